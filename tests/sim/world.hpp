// The nodes of a simulated cluster, in one thread: the real Node, LocalRound and WorkerGroup of
// every agent. Processes and files are modelled, clocks come from network.hpp; who coordinates the
// run, and over what wires, a derived world says. The same seed gives the same run, event by event.
// Whatever the real shells do not provably filter is required, not dropped: an event that a core
// refuses ends the simulated life.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "agent/explain/records.hpp"
#include "agent/node/local_round.hpp"
#include "agent/node/node.hpp"
#include "agent/node/pump.hpp"
#include "rendezvous/client/membership.hpp"
#include "tests/sim/checker.hpp"
#include "tests/sim/network.hpp"

namespace ddprun::sim {

inline constexpr Duration kFailureGrace = seconds(1);
inline constexpr Duration kRejoin = seconds(10);

struct WorldOptions {
  std::uint64_t seed = 1;
  protocol::Terms terms;
  Duration delay_min = milliseconds(1);
  Duration delay_max = milliseconds(1);
  Duration spawn_min = milliseconds(1);
  Duration spawn_max = milliseconds(1);
  Duration stop_min = milliseconds(1);
  Duration stop_max = milliseconds(1);
  Duration drain_max = Duration(0);     // until the last output of workers that ended is read
  Duration evidence_max = Duration(0);  // until the files of a worker that failed are read
  Duration work = seconds(20);          // from "all groups of the round run" to success
  Duration work_skew = Duration(0);     // more for some
  Duration coordinator_timeout = seconds(60);
  int peer_failure_percent = 0;           // a group dies when another of its round does
  int graceful_percent = 0;               // a worker that is told to stop exits with 0
  int drift_percent = 0;                  // clocks run up to this much fast or slow
  std::optional<int> survivor_percent{};  // --restart=failed, and how many workers survive
  bool steady = false;                    // survivors take each round, and none ends
  int spare_percent = 0;                  // how many of the other places a spare takes
  Duration stop_grace = seconds(30);
};

struct NodeOptions {
  std::string host;
  int workers = 1;
  std::string role = "default";
  std::optional<int> node_rank;
  std::optional<protocol::Terms> terms;  // instead of the world's
  std::string run_id = "demo";
  std::string fingerprint;  // of the command
  bool blind = false;       // no cgroups, and a kernel that lists no children
};

class World {
 public:
  explicit World(WorldOptions options);
  virtual ~World() = default;
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // The plot.
  int add_node(NodeOptions options);
  void start_agent(int node);
  void kill_agent(int node, const std::string& how);  // its connections close
  void power_off(int node);                           // no one is told
  /// The signal reaches the agent's process, which passes it to its workers and leaves.
  void signal_agent(int node, int signal);
  /// The agent leaves for a reason of its own.
  void leave(int node, int exit_code, const std::string& reason);
  void fail_worker(int node, const std::string& cause, int exit_code, int local_rank = 0);
  /// The agent gives up its ranks, which hang.
  /// `no_restart`: why none is to follow; empty: one may.
  void give_up_ranks(int node, const std::string& no_restart = "");
  /// Its ranks make no progress for so long, or until they end.
  void make_quiet(int node, Duration time);
  void finish_worker_group(int node);
  /// Its ranks end with 0 after such a time, unless they are told before that one is gone.
  void take_last_step(int node, Duration least, Duration most);
  /// Workers there leave processes that live so long, unless they are ended before.
  enum class Helpers {
    kObedient,
    kStubborn,    // they need SIGKILL
    kElsewhere,   // in sessions of their own
    kUnkillable,  // the same, and they hang in the kernel
  };
  void leave_helpers(int node, Helpers helpers, Duration time);
  /// The next worker to be started there cannot be.
  void break_next_spawn(int node) { nodes_[index(node)].spawn_breaks = true; }
  /// One worker there does not obey SIGKILL for so long.
  void make_unkillable(int node, Duration time);
  /// A console that is not read or a file system that does not answer: what the agent writes there
  /// takes that long, which only its end and the drain of its workers wait for.
  void stall_output(int node, Duration time);
  /// A folder that does not answer, and the driver of the devices: workers start that much later,
  /// and what the files of a worker that failed say is not waited for long.
  void stall_start(int node, Duration time);
  void run_for(Duration time);
  [[nodiscard]] bool run_until(const std::function<bool()>& done, Duration limit);

  // What can be seen.
  [[nodiscard]] bool agent_alive(int node) const { return nodes_[index(node)].agent != nullptr; }
  [[nodiscard]] bool group_alive(int node) const { return nodes_[index(node)].group.has_value(); }
  [[nodiscard]] bool group_works(int node) const {
    const auto& group = nodes_[index(node)].group;
    return group && !group->ending();
  }
  [[nodiscard]] int agents_alive() const { return agents_alive_; }
  /// How its last agent ended.
  [[nodiscard]] const std::optional<client::End>& end_of(int node) const {
    return nodes_[index(node)].end;
  }
  [[nodiscard]] std::optional<int> exit_code(int node) const {
    return end_of(node) ? std::optional(end_of(node)->exit_code) : std::nullopt;
  }
  [[nodiscard]] bool somebody_ended() const { return !checker_.exit_codes().empty(); }
  [[nodiscard]] Round round_of(int node) const;
  [[nodiscard]] int node_count() const { return static_cast<int>(nodes_.size()); }
  [[nodiscard]] const std::string& host_of(int node) const {
    return nodes_[index(node)].options.host;
  }
  /// Something was done to the world that its agents may notice.
  void disturb() { disturbed_ = now(); }
  /// Orders to give up ranks that hang.
  [[nodiscard]] int hangs() const { return hangs_; }
  [[nodiscard]] int workers_started() const { return workers_; }
  [[nodiscard]] std::uint64_t steps() const { return steps_; }
  [[nodiscard]] TimePoint now() const { return timeline_.now(); }
  [[nodiscard]] Checker& checker() { return checker_; }
  [[nodiscard]] const Checker& checker() const { return checker_; }
  /// No part of what `ddprun explain` tells of this life exceeds the whole.
  void check_records() const;
  [[nodiscard]] Random& random() { return random_; }
  [[nodiscard]] Timeline& timeline() { return timeline_; }
  /// "forming --> running": the states that the cores went through, for docs/internals/STATES.md.
  [[nodiscard]] const std::set<std::string>& transitions() const { return transitions_; }
  [[nodiscard]] bool is_traced() const { return static_cast<bool>(trace_); }
  /// Gets one line per thing that happens; unset: nothing is formatted.
  void trace(std::function<void(const std::string&)> line) { trace_ = std::move(line); }
  /// The same, behind the time since now.
  void trace_with_time(const std::function<void(const std::string&)>& line);
  void say(const std::string& line) const {
    if (trace_) trace_(line);
  }
  /// The same for a line that costs time to make.
  template <class Line>
  requires std::is_invocable_v<Line>
  void say(const Line& line) const {
    if (trace_) trace_(line());
  }

 protected:
  struct Worker {
    bool alive = false;
    bool awaited = false;  // its end was not seen by its agent
    int signal = 0;        // the last by ddprun while it lived
    bool unkillable = false;
    bool ignores_stop = false;   // but ends when its stacks are asked for, or by SIGKILL
    bool complains = false;      // its failure is a witness
    bool leaves_helper = false;  // when it ends
    bool helper_alive = false;
    Helpers helper{};
    Duration helper_lives{};
    bool unknown = false;  // whether it has left anything
    std::optional<ExitStatus> status{};
    bool survives = false;
    bool joined = true;                // its round; one that was carried is yet to
    int number = 0;                    // of the process
    std::optional<Stamp> trains_in{};  // the round that it was started in, or took last
    bool in_last_step = false;         // it takes no other round
    bool is_spare = false;             // between two rounds: it has taken none so far
  };
  class RoundShell;
  /// A round on one node: its driver, and the processes and files that this works with.
  struct Group {
    protocol::StartRound round;
    int generation = 0;
    std::shared_ptr<RoundShell> shell;
    std::vector<Worker> workers;
    int timer = 0;         // one that was replaced or cancelled never comes
    bool opening = false;  // the files
    bool devices_held = false;
    bool running = false;
    bool all_carried = false;  // or had finished: all are of the round before
    bool succeeded = false;
    TimePoint succeeded_at{};
    std::optional<TimePoint> told_to_end;  // when on_step() saw it ending()
    int stop_signals = 0;                  // to the agent
    bool ordered_to_stop = false;
    bool spared = false;     // a failure ends the run: the workers have the failure grace
    bool requested = false;  // a user asked for the stop, here or on another node
    int signals = 0;         // that ended nothing, to the workers
    Duration grace{};        // of the stop
    std::optional<TimePoint> quiet_since;  // its ranks make no progress; none: they do
    std::optional<TimePoint> asked_at;     // the coordinator asked last whether they still do not
    Duration quiet_then{};                 // how long they did not at that time
    std::optional<TimePoint> stop_began;   // by the agent's clock: the first signal
    std::optional<TimePoint> stopping_since;  // by that clock: a rank may leave something later
    void forget_stop() {
      stop_began.reset();
      stopping_since.reset();
    }
    [[nodiscard]] bool ending() const;
    [[nodiscard]] bool started() const;  // any worker, ever
  };
  /// Does what the core of an agent orders.
  class NodeShell;
  using Agent = Pump<ddprun::Node, node::Event, NodeShell>;
  struct Node {
    NodeOptions options;
    DriftingClock clock;
    std::shared_ptr<NodeShell> shell;
    std::unique_ptr<Agent> agent;              // null: no agent runs there
    std::array<std::string_view, 4> states{};  // of its membership, as it was Stepped last
    int process = -1;
    client::LinkId link = 0;  // the one that is wanted; 0: none
    int connection = -1;      // what it became
    int timer = 0;
    bool timer_pending = false;
    bool leaving = false;
    bool ended = false;
    bool partitioned = false;
    TimePoint paused_until{};
    std::deque<std::function<void()>> held;  // what its thread will find when it runs again
    TimePoint answers_from{};                // after a pause, or after it was cut off
    TimePoint output_stalled_until{};
    TimePoint start_stalled_until{};
    bool spawn_breaks = false;
    bool holds_unkillable = false;  // of a round that was stopped here
    std::uint16_t ports_opened = 0;
    bool listener_open = false;  // for the next round's store
    std::optional<protocol::RoundStamp> serves;
    std::optional<Group> group;
    std::map<int, Worker> carried;   // by local rank, between two groups
    LocalRound::Trained trained{};   // the workers of the last group
    std::optional<client::End> end;  // of its last agent
  };

  void record_transition(std::string_view from, std::string_view to);
  [[nodiscard]] static std::size_t index(int value) { return static_cast<std::size_t>(value); }
  [[nodiscard]] Duration delay() { return random_.between(options_.delay_min, options_.delay_max); }
  [[nodiscard]] bool paused(int node) const { return now() < nodes_[index(node)].paused_until; }
  /// Whether the process that something was meant for is still there.
  [[nodiscard]] bool lives(int node, int process) const {
    return nodes_[index(node)].agent != nullptr && nodes_[index(node)].process == process;
  }
  [[nodiscard]] Group* group_of(int node, int generation);

  // Who coordinates the run, and the wires to it.
  virtual void make_agent(int node);  // node_shell.cpp
  virtual void connect(int node, const client::Connect& order) = 0;
  virtual void close_link(int node, client::LinkId link) = 0;
  virtual void send(int node, const client::SendMessage& order) = 0;
  virtual void coordinate(int node, const client::Coordinate&) {
    feed(node, client::Abdicated{"nowhere"});
  }
  virtual void withdraw(int) {}
  [[nodiscard]] virtual client::MembershipOptions membership_options(int node) const;
  /// Whether what one says reaches the other.
  [[nodiscard]] virtual bool is_reached(int from, int to) const = 0;
  [[nodiscard]] virtual Checker::Coordinated coordinated(int node) const = 0;
  /// Its agent has ended; the process ends later.
  virtual void after_end(int node) = 0;
  virtual void exit_process(int node) = 0;
  enum class Gone { kKilled, kPower };  // kPower: its kernel says nothing
  virtual void lose_process(int node, Gone how) = 0;

  // world_agent.cpp: an agent and its thread.
  template <class What>
  void on_thread(int node, int process, What what);
  void feed(int node, const node::Event& event);  // node_shell.cpp
  void note_heard(int node, const protocol::Message& message);
  void expect_leave(int node, const std::string& reason);
  [[nodiscard]] virtual bool stands_still(int node) const {
    return paused(node) || !nodes_[index(node)].held.empty();
  }
  virtual void hold(int node, std::function<void()> what);
  void release_held(int node);
  virtual void on_step(int node, const node::Stepped& step);
  virtual void arm_agent(int node, TimePoint deadline);
  void agent_timer(int node, int process, int timer, TimePoint when);
  void take_signal(int node, int signal);
  void on_end(int node, const client::End& end);
  void forget_agent(int node);

  // world_record.cpp
  enum class Seen { kRuns, kStops, kExit, kOver };
  void record(int node, const protocol::Message& message);
  void record(int node, Seen what, int rank = 0);
  [[nodiscard]] explain::NodeRecord& record_now(int node);
  [[nodiscard]] explain::RoundRecord* round_now(int node);

  void deliver_signal(int node) {
    auto& group = nodes_[index(node)].group;
    if (group) ++group->signals;
  }

  // world_hang.cpp
  void tell_quiet(int node, int generation);
  void make_progress(int node, int generation, TimePoint since);
  void check_hang(int node, const client::CheckHang& order);
  void on_hang_sent(int node, const protocol::Hang& hang);

  // world_stores.cpp
  [[nodiscard]] std::uint16_t open_store(int node);
  void serve_store(int node);
  void release_store(int node);
  void tell_if_idle(const protocol::RoundStamp& stamp);
  void close_store(int node, Round round);
  enum class Wires { kAny, kWhole };
  [[nodiscard]] int client_of(const protocol::RoundStamp& stamp, int server, Wires wires) const;

  [[nodiscard]] static AgentId agent_of(const Node& node) {
    return AgentId(node.options.host + "#" + std::to_string(node.process));
  }

  // world_round.cpp: a round on one node.
  void start_group(int node, const protocol::StartRound& round);
  void stop_group(int node, const client::StopGroup& order);
  void pass_stop_signal(int node, int signal);
  template <class What>
  void on_group_thread(int node, int generation, What what);
  void check_stop_of_none(int node) const;
  void before_stop(int node);
  void check_kill(int node) const;
  void check_spared(int node) const;
  void check_round_over(int node, const RoundResult& result) const;
  void check_stop_is_bounded(int node) const;
  [[nodiscard]] Duration spawn_time(int node);
  [[nodiscard]] Duration evidence_time(int node);
  void on_group_step(int node);
  void group_runs(int node, int generation);
  void check_success(int node);
  void group_over(int node, int generation);

  // world_survivors.cpp: its processes that are kept.
  void tell_round(int node, int generation, LocalRank rank);
  void lose_held(int node);
  void take_spares(Group& group, WorkerGroup::Options& options);
  void see_late_exit(int node, LocalRank rank);
  void say_survives(int node, int generation, LocalRank rank);
  void take_round(int node, int generation, LocalRank rank);
  void finish_last_step(int node, int number);
  [[nodiscard]] bool is_before_join(int node) const;
  void lose_kept(int node, LocalRank rank, Duration within);

  // world_workers.cpp: its processes.
  void signal_worker(int node, int generation, LocalRank rank, int signal);
  void abort_worker(int node, int generation, LocalRank rank);
  void rank_work_done(int node, int generation, LocalRank rank);
  void exit_worker(int node, int generation, LocalRank rank, ExitStatus status);
  void see_exit(int node, int generation, LocalRank rank, ExitStatus status);
  void look_again(int node, int generation, LocalRank rank);
  void release_worker(int node, int generation, LocalRank rank);
  void signal_helper(int node, int generation, LocalRank rank, int signal);
  void end_helper(int node, int generation, LocalRank rank);
  void disturb_siblings(int node);
  void disturb_peers(const protocol::RoundStamp& stamp, int node);

  WorldOptions options_;
  Random random_;
  Timeline timeline_;
  Checker checker_;
  struct Recorded {
    explain::NodeRecord record;
    TimePoint begun;  // by its clock
  };
  std::map<int, Recorded> records_;  // by process
  std::vector<Node> nodes_;
  std::map<Stamp, int> released_;  // stores of ended rounds that are still open, at this node
  std::map<Stamp, std::vector<std::pair<int, int>>> running_;  // (node, generation) per round
  TimePoint disturbed_{};                                      // the last fault
  int hangs_ = 0;
  int processes_ = 0;
  int workers_ = 0;  // that were started
  int generations_ = 0;
  int agents_alive_ = 0;
  std::uint64_t steps_ = 0;
  std::set<std::string> transitions_;
  std::function<void(const std::string&)> trace_;
};

// What happens to an agent's process is learned by its thread: later, if that stands still.
template <class What>
void World::on_thread(int id, int process, What what) {
  if (!lives(id, process)) return;
  if (!stands_still(id)) return what();
  hold(id, [this, id, process, what = std::move(what)] { on_thread(id, process, what); });
}

// The same for a round, which may be over by then, or its agent gone.
template <class What>
void World::on_group_thread(int id, int generation, What what) {
  Group* group = group_of(id, generation);
  if (group == nullptr) return;
  if (!stands_still(id)) return what(*group);
  hold(id,
       [this, id, generation, what = std::move(what)] { on_group_thread(id, generation, what); });
}

}  // namespace ddprun::sim
