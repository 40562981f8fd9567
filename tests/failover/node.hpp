// Node: one agent process in the world of fail-over, as agent/agent, agent/coordinate/standby and
// agent/coordinate/endpoint_notice make it: a real ddprun::Node with its Membership, the
// coordinators in the process, the port where it stands by, the notice to the endpoint, and simple
// workers. Owned by World. What happens to it waits until the process runs: run().
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agent/node/node.hpp"
#include "agent/node/pump.hpp"
#include "tests/failover/server.hpp"

namespace ddprun::failover {

inline constexpr int kEndpointPort = 29400;
inline constexpr int kStandbyPort = 30000;

/// What a Node needs of its world.
class NodeWorld {
 public:
  virtual ~NodeWorld() = default;
  [[nodiscard]] virtual TimePoint now() const = 0;
  /// Runs even if the process does not: what it starts is for the kernel, the workers, or post().
  virtual void after(Duration time, std::function<void()> what) = 0;
  virtual void wake(ProcessId process) = 0;
  [[nodiscard]] virtual bool is_traced() const = 0;
  virtual void say(const std::string& line) = 0;
  [[nodiscard]] virtual Random& random() = 0;
  virtual void on_round_sent(const protocol::StartRound& start, const AgentId& to,
                             const protocol::RoundStamp& base) = 0;
  virtual void on_round_taken(ProcessId process, const protocol::RoundStamp& before,
                              const protocol::StartRound& start) = 0;
  virtual void on_step(ProcessId process) = 0;
  virtual void on_group(ProcessId process) = 0;
};

struct NodeOptions {
  ProcessId process = kNoProcess;
  int host = 0;
  protocol::Terms terms;
  Duration coordinator_timeout = seconds(10);
  sim::DriftingClock clock{};
  Duration spawn_max = milliseconds(20);
  Duration stop_max = milliseconds(50);
};

class Node final : public ServerUser {
 public:
  Node(NodeWorld& world, Net& net, NodeOptions options);
  ~Node() override;

  /// Starts the agent; on host 0 with the coordinator at the endpoint, if the port is free.
  void begin();
  /// The process has processor time: handles all that has come.
  void run();
  /// Nothing is left to do: the process can exit.
  [[nodiscard]] bool is_over() const;

  // The workers, which live as long as the process.
  struct Group {
    protocol::StartRound start;
    enum class State { kSpawning, kRunning, kEnding } state = State::kSpawning;
    int number = 0;
  };
  [[nodiscard]] const std::optional<Group>& group() const { return group_; }
  [[nodiscard]] bool works() const { return group_ && group_->state == Group::State::kRunning; }
  void fail_worker(int exit_code);
  void succeed();
  void ask_to_stop();

  [[nodiscard]] const client::Membership& membership() const { return agent().membership(); }
  [[nodiscard]] const std::optional<client::End>& end_of_agent() const { return agent().end(); }
  [[nodiscard]] AgentId id() const;
  [[nodiscard]] int host() const { return options_.host; }
  [[nodiscard]] ProcessId process() const { return options_.process; }
  [[nodiscard]] const protocol::RoundStamp& stamp() const { return stamp_; }
  [[nodiscard]] bool is_spare() const { return is_spare_; }
  [[nodiscard]] std::optional<TimePoint> armed() const { return armed_; }
  /// All in the process: at the endpoint, leading, a candidate.
  [[nodiscard]] std::vector<const Server*> servers() const;
  /// Host and port to which its agent is connected, or connects; -1: to none.
  [[nodiscard]] std::pair<int, int> peer() const;

  // What ddprun::Node orders.
  [[nodiscard]] TimePoint now() const { return options_.clock.local(world_.now()); }
  void act(const client::Connect& action);
  void act(const client::Coordinate& action);
  void act(const client::Withdraw& action);
  void act(const client::CloseLink& action);
  void act(const client::SendMessage& action);
  void act(const client::OpenStore& action);
  void act(const client::ReleaseStore& action);
  void act(const client::StartGroup& action);
  void act(const client::StopGroup& action);
  void act(const client::ArmTimer& action);
  void act(const node::PassStopSignal& action);
  void act(const node::Stepped& action);
  void act(const node::LogNote& action);
  template <class Action>
  void act(const Action&) {}

  // ServerUser.
  [[nodiscard]] TimePoint local_now() const override { return now(); }
  void wake_at(TimePoint local) override;
  [[nodiscard]] bool is_traced() const override { return world_.is_traced(); }
  void say(const std::string& line) override { world_.say(line); }
  void on_round_sent(const protocol::StartRound& start, const AgentId& to,
                     const protocol::RoundStamp& base) override {
    world_.on_round_sent(start, to, base);
  }
  void post(std::function<void()> what) override;

 private:
  // node.cpp: the agent.
  void feed(const client::Event& event);
  [[nodiscard]] const ddprun::Node& agent() const { return **agent_; }
  [[nodiscard]] bool host_coordinator();
  void read_link();
  void tick_if_due();
  void serve();
  void settle();
  [[nodiscard]] Server::Options server_options(int port);
  // node_workers.cpp
  void end_group();
  void later(Duration time, std::function<void()> what);
  // node_standby.cpp: agent/coordinate/standby and agent/coordinate/endpoint_notice.
  void listen();
  void stand_by(const client::Event& event);
  void turn_away();
  void turn_away_if_readable();
  void lead();
  void attend(Server& leader);
  /// EndpointNotice.
  struct Notice {
    int host = 0;
    int port = 0;
    const Server* leader = nullptr;  // of which it tells
    bool is_of_rival = false;        // ends with its link
    SocketId socket = kNoSocket;
    bool is_up = false;
    int unanswered = 0;
    TimePoint give_up{};
    std::optional<TimePoint> again{};
  };
  void attempt(Notice& notice);
  void tell(Notice& notice);
  void again(Notice& notice);
  void run(Notice& notice);
  void run_notices();
  void drop_notices();
  struct Rival {
    protocol::Moved place;
    const Server* leader;
  };
  std::vector<Rival> heard_;  // by notices and coordinators

  NodeWorld& world_;
  Net& net_;
  NodeOptions options_;
  std::unique_ptr<Pump<ddprun::Node, node::Event, Node>> agent_;
  std::deque<std::function<void()>> posted_;
  int servers_made_ = 0;

  client::LinkId link_ = 0;
  SocketId socket_ = kNoSocket;
  int link_port_ = 0;
  std::optional<TimePoint> give_up_;  // of the attempt to connect
  std::optional<TimePoint> armed_;
  const client::Event* taking_ = nullptr;
  protocol::RoundStamp stamp_;  // of the round that it has taken on
  bool is_spare_ = false;       // as it was told last

  std::unique_ptr<Server> local_;      // Agent::local_coordinator_
  std::unique_ptr<Server> endpoint_;   // Agent::endpoint_coordinator_
  std::unique_ptr<Server> candidate_;  // in the seat of Standby
  bool listens_ = false;
  int standby_port_ = 0;
  bool turns_away_ = false;

  bool leads_ = false;  // local_ is where this node stood by

  std::vector<Notice> notices_;

  std::optional<Group> group_;
  int groups_ = 0;
  int stores_ = 0;
  bool asked_to_settle_ = false;
};

}  // namespace ddprun::failover
