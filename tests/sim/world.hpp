// A whole cluster in one thread: the real Run, the real Membership and WorkerGroup of every agent;
// workers are only modelled, wires and clocks come from network.hpp. The same seed gives the same
// run, event by event.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/core/worker_group.hpp"
#include "rendezvous/client/membership.hpp"
#include "rendezvous/round/run.hpp"
#include "tests/sim/checker.hpp"
#include "tests/sim/network.hpp"

namespace ddprun::sim {

enum class Bytes { kPlain, kCodec };  // whether messages go through the codec

struct WorldOptions {
  std::uint64_t seed = 1;
  protocol::Terms terms;
  Duration delay_min = milliseconds(1);
  Duration delay_max = milliseconds(1);
  Duration spawn_min = milliseconds(1);
  Duration spawn_max = milliseconds(1);
  Duration stop_min = milliseconds(1);
  Duration stop_max = milliseconds(1);
  Duration work = seconds(20);       // from "all groups of the round run" to success
  Duration work_skew = Duration(0);  // more for some
  Duration coordinator_timeout = seconds(60);
  int peer_failure_percent = 0;  // a group dies when another of its round does
  int drift_percent = 0;         // clocks run up to this much fast or slow
  Bytes bytes = Bytes::kPlain;
};

struct NodeOptions {
  std::string host;
  int workers = 1;
  std::string role = "default";
  std::optional<int> node_rank;
  std::optional<protocol::Terms> terms;  // instead of the world's
  std::string run_id = "demo";
};

class World {
 public:
  explicit World(WorldOptions options);

  // The plot.
  int add_node(NodeOptions options);
  void start_agent(int node);
  void kill_agent(int node, const std::string& how);  // its connections close
  void power_off(int node);                           // nobody is told
  void leave(int node, int exit_code, const std::string& reason);
  void fail_worker(int node, const std::string& cause, int exit_code);
  void finish_worker_group(int node);
  void pause_agent(int node, Duration time);
  void set_partitioned(int node, bool partitioned);
  void drop_link(int node);
  void start_coordinator();
  void crash_coordinator();
  void pause_coordinator(Duration time);
  void run_for(Duration time);
  [[nodiscard]] bool run_until(const std::function<bool()>& done, Duration limit);

  // What can be seen.
  [[nodiscard]] bool agent_alive(int node) const {
    return nodes_[index(node)].membership != nullptr;
  }
  [[nodiscard]] bool group_alive(int node) const { return nodes_[index(node)].group.has_value(); }
  [[nodiscard]] bool group_works(int node) const {
    const auto& group = nodes_[index(node)].group;
    return group && !group->ending();
  }
  [[nodiscard]] bool coordinator_up() const { return run_ != nullptr; }
  [[nodiscard]] const round::Run& run() const { return *run_; }
  [[nodiscard]] int agents_alive() const { return agents_alive_; }
  [[nodiscard]] std::optional<int> exit_code(int node) const {
    return nodes_[index(node)].exit_code;
  }
  [[nodiscard]] Round round_of(int node) const;
  [[nodiscard]] int node_count() const { return static_cast<int>(nodes_.size()); }
  [[nodiscard]] bool finished() const { return finished_; }
  [[nodiscard]] std::uint64_t sends() const { return sends_; }
  [[nodiscard]] std::uint64_t steps() const { return steps_; }
  [[nodiscard]] TimePoint now() const { return timeline_.now(); }
  [[nodiscard]] Checker& checker() { return checker_; }
  [[nodiscard]] Random& random() { return random_; }
  [[nodiscard]] Timeline& timeline() { return timeline_; }
  /// Gets one line per thing that happens; unset: nothing is formatted.
  void trace(std::function<void(const std::string&)> line) { trace_ = std::move(line); }

 private:
  struct Group {
    protocol::StartRound round;
    int generation = 0;
    std::unique_ptr<WorkerGroup> core;
    TimePoint started{};
    bool running = false;
    bool failure_told = false;
    std::string cause;  // of the first failure
    int exit_code = 0;
    [[nodiscard]] bool ending() const { return core->state() > ddprun::GroupState::kHealthy; }
  };
  struct Node {
    NodeOptions options;
    DriftingClock clock;
    std::unique_ptr<client::Membership> membership;
    int process = -1;
    int connection = -1;
    int timer = 0;
    bool timer_pending = false;
    bool leaving = false;
    bool partitioned = false;
    TimePoint paused_until{};
    std::uint16_t ports = 0;
    std::optional<Group> group;
    std::optional<int> exit_code;
  };
  struct Connection {
    int node;
    int process;
    client::LinkId agent_link;
    int coordinator;  // which of the coordinators that followed each other
    round::LinkId link;
    Pipe up;    // to the coordinator
    Pipe down;  // to the agent
    bool agent_open = true;
    bool coordinator_open = true;
  };
  enum class Way { kUp, kDown };

  [[nodiscard]] static std::size_t index(int value) { return static_cast<std::size_t>(value); }
  [[nodiscard]] Duration delay() { return random_.between(options_.delay_min, options_.delay_max); }

  // world_wire.cpp
  void connect(int node, client::LinkId link);
  void establish(int node, int process, client::LinkId link);
  void push(int connection, Way way, Item item);
  void pump(int connection, Way way);
  void deliver(int connection, Way way, const Item& item);
  void close_agent_end(int connection);
  void close_coordinator_end(int connection);
  [[nodiscard]] protocol::Message through_codec(const protocol::Message& message) const;

  // world.cpp
  void to_agent(int node, int process, client::Event event);
  void to_coordinator(int coordinator, round::Event event);
  void apply(int node, client::Actions actions);
  void apply_one(int node, const client::Action& action);
  void apply(round::Actions actions);
  [[nodiscard]] bool can_answer(const Connection& connection) const;
  void arm_agent(int node, TimePoint deadline);
  void agent_timer(int node, int process, int timer, TimePoint when);
  void arm_coordinator(TimePoint deadline);
  void coordinator_timer(int coordinator, int timer, TimePoint when);
  void end_agent(int node, const client::End& end);
  void forget_agent(int node);
  void say(const std::string& line) const {
    if (trace_) trace_(line);
  }

  // world_workers.cpp
  void start_group(int node, const protocol::StartRound& round);
  void group_runs(int node, int generation);
  void group_work_done(int node, int generation);
  void stop_group(int node);
  void feed(int node, int generation, const GroupEvent& event);
  void act(int node, int generation, const GroupAction& action);
  void tell_failure(int node, LocalRank rank);
  void group_over(int node);
  void disturb_peers(const protocol::RoundStamp& stamp, int node);

  WorldOptions options_;
  Random random_;
  Timeline timeline_;
  Checker checker_;
  std::vector<Node> nodes_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::map<std::uint64_t, int> by_link_;                       // the current coordinator's links
  std::map<Stamp, std::vector<std::pair<int, int>>> running_;  // (node, generation) per round
  std::unique_ptr<round::Run> run_;
  DriftingClock coordinator_clock_;
  TimePoint coordinator_paused_until_{};
  int coordinator_ = 0;
  int coordinator_timer_ = 0;
  bool coordinator_timer_pending_ = false;
  int speaker_ = -1;      // the process whose message the coordinator is taking
  bool charter_ = false;  // the current coordinator has admitted somebody
  bool finished_ = false;
  int processes_ = 0;
  int generations_ = 0;
  int agents_alive_ = 0;
  std::uint64_t links_ = 0;
  std::uint64_t sends_ = 0;
  std::uint64_t steps_ = 0;
  std::function<void(const std::string&)> trace_;
};

}  // namespace ddprun::sim
