// World::Process: what an agent's process has besides its Node and workers, as agent/agent,
// agent/coordinate/standby and agent/coordinate/endpoint_notice make it: the link to a coordinator,
// the coordinators in the process, the port where it stands by, the notices of a leader. What
// happens to it waits until the process runs: run().
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/failover/server.hpp"
#include "tests/failover/world.hpp"

namespace ddprun::failover {

inline constexpr int kEndpointPort = 29400;
inline constexpr int kStandbyPort = 30000;

class World::Process {
 public:
  /// On host 0 with the coordinator at the endpoint, if the port is free.
  Process(World& world, int host, ProcessId process);

  /// The process has processor time: handles all that has come.
  void run();
  /// Nothing is left to do: the process can exit.
  [[nodiscard]] bool is_over() const;
  void exit() { exits_ = true; }

  [[nodiscard]] AgentId id() const { return agent_of(world_.nodes_[index(host_)]); }
  [[nodiscard]] ProcessId process() const { return process_; }
  [[nodiscard]] const client::Membership& membership() const { return agent().membership(); }
  [[nodiscard]] const protocol::RoundStamp& stamp() const { return stamp_; }
  [[nodiscard]] bool is_spare() const { return is_spare_; }
  [[nodiscard]] bool has_coordinator() const { return local_ != nullptr; }
  [[nodiscard]] std::uint16_t standby_port() const {
    return static_cast<std::uint16_t>(standby_port_);
  }
  /// All in the process: at the endpoint, leading, a candidate.
  [[nodiscard]] std::vector<const Server*> servers() const;
  /// Host and port to which its agent is connected, or connects; -1: to none.
  [[nodiscard]] std::pair<int, int> peer() const;

  // What its Node orders.
  void connect(const client::Connect& action);
  void close_link(client::LinkId link);
  void send(const client::SendMessage& action);
  void arm(TimePoint deadline);
  void coordinate(const client::Coordinate& order);
  void withdraw();
  /// Before what follows from the event that was taken.
  void on_step();

  // What its coordinators do.
  [[nodiscard]] TimePoint local_now() const;
  void wake_at(TimePoint local);
  [[nodiscard]] bool is_traced() const { return world_.is_traced(); }
  void say(const std::string& line) { world_.say(line); }
  void on_sent(int host, const protocol::Message& message) { world_.on_sent(host, message); }
  void on_rounds_sent(const std::vector<Sent>& rounds, const protocol::RoundStamp& base) {
    world_.on_rounds_sent(rounds, base);
  }
  /// Not from inside a call of the coordinator.
  void post(std::function<void()> what) { world_.hold(host_, std::move(what)); }

 private:
  // process.cpp
  void feed(const client::Event& event);
  [[nodiscard]] const ddprun::Node& agent() const { return **world_.nodes_[index(host_)].agent; }
  [[nodiscard]] bool host_coordinator();
  void read_link();
  void tick_if_due();
  void serve();
  void settle();
  [[nodiscard]] Server::Options server_options(int port);
  // standby.cpp: agent/coordinate/standby and agent/coordinate/endpoint_notice.
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

  World& world_;
  Net& net_;
  int host_;
  ProcessId process_;
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
  std::vector<Rival> heard_;  // by notices and coordinators

  bool asked_to_settle_ = false;
  bool exits_ = false;
};

}  // namespace ddprun::failover
