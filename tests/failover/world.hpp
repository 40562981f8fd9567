// World: nodes, wires and faults of one run whose coordinators fail over, with its clock and its
// checks after every event. Deterministic: everything is decided by the options. Single thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/failover/checker.hpp"
#include "tests/failover/net.hpp"
#include "tests/failover/node.hpp"

namespace ddprun::failover {

struct WorldOptions {
  std::uint64_t seed = 1;
  int nodes = 3;
  protocol::Terms terms;
  Duration coordinator_timeout = seconds(10);
  Duration latency_min = milliseconds(1);
  Duration latency_max = milliseconds(1);
  int drift_percent = 0;
  Duration spawn_max = milliseconds(20);
  Duration stop_max = milliseconds(50);
  int peer_failure_percent = 0;  // workers that fail when a process of their round ends
  Duration turn_max{0};          // until a process that is woken runs
};

class World final : public NodeWorld {
 public:
  explicit World(WorldOptions options);
  ~World() override;
  using Trace = std::function<void(const std::string&)>;
  void trace(Trace trace) { trace_ = std::move(trace); }

  // Time.
  [[nodiscard]] TimePoint now() const override { return timeline_.now(); }
  void run_for(Duration time);
  /// Whether it came to be within this time.
  [[nodiscard]] bool run_until(const std::function<bool()>& done, Duration limit);
  void after(Duration time, std::function<void()> what) override {
    timeline_.after(time, std::move(what));
  }

  // What happens to hosts and processes. Each does nothing where it cannot be.
  void start(int host);
  void start_all();
  void kill(int host);
  void kill_host(int host);
  void pause(int host);
  void resume(int host);
  void freeze(int host);
  void thaw(int host);
  void cut(int from, int to);
  void mend(int from, int to);
  /// Those hosts and all others do not hear each other.
  void split(const std::set<int>& side);
  void break_links(int left, int right);
  void heal();
  void fail_worker(int host, int exit_code);
  void ask_to_stop(int host);
  /// From now on workers succeed when all of their round run.
  void finish();

  // What is.
  [[nodiscard]] int nodes() const { return options_.nodes; }
  [[nodiscard]] const WorldOptions& options() const { return options_; }
  [[nodiscard]] Checker& checker() { return checker_; }
  /// The process on this host; null: none lives there.
  [[nodiscard]] const Node* node(int host) const;
  [[nodiscard]] bool agent_lives(int host) const;
  [[nodiscard]] int agents_alive() const;
  [[nodiscard]] bool is_paused(int host) const { return paused_.contains(host); }
  [[nodiscard]] bool is_reached(int from, int to) const;
  [[nodiscard]] int round_of(int host) const;
  [[nodiscard]] bool works(int host) const;
  /// How the last agent of this host ended.
  struct Exit {
    int code = 0;
    std::string text;
  };
  [[nodiscard]] const std::optional<Exit>& exit_of(int host) const {
    return exits_[static_cast<std::size_t>(host)];
  }
  /// The coordinator that this agent is connected to; null: none.
  [[nodiscard]] const Server* coordinator_of(int host) const;
  /// The workers of all members of this agent's round run, and its coordinator lives.
  [[nodiscard]] bool runs_round(int host) const;
  /// Every agent has ended, runs in the one round, or waits as a spare. Else `why`.
  [[nodiscard]] bool is_calm(std::string* why, std::set<std::string>* coordinators = nullptr) const;
  [[nodiscard]] std::string picture() const;

  // NodeWorld.
  void wake(ProcessId process) override;
  [[nodiscard]] bool is_traced() const override { return static_cast<bool>(trace_); }
  void say(const std::string& line) override;
  [[nodiscard]] Random& random() override { return random_; }
  void on_round_sent(const protocol::StartRound& start, const AgentId& to,
                     const protocol::RoundStamp& base) override;
  void on_round_taken(ProcessId process, const protocol::RoundStamp& before,
                      const protocol::StartRound& start) override;
  void on_step(ProcessId) override { ++steps_; }
  void on_group(ProcessId process) override;
  [[nodiscard]] std::uint64_t steps() const { return steps_; }

 private:
  struct Host {
    ProcessId process = kNoProcess;
    sim::DriftingClock clock{};
    bool had_coordinator = false;
    std::optional<TimePoint> stray_since;  // its workers run for no coordinator
    Checker::Key works_for{};              // the round whose workers run; number 0: none
  };
  [[nodiscard]] Host& host(int number) { return hosts_[static_cast<std::size_t>(number)]; }
  [[nodiscard]] const Host& host(int number) const {
    return hosts_[static_cast<std::size_t>(number)];
  }
  [[nodiscard]] bool are_one_run(const Server& left, const Server& right) const;
  /// Nodes whose workers of this round run.
  [[nodiscard]] int running(const protocol::RoundStamp& stamp) const;
  [[nodiscard]] Node* find(ProcessId process) const;
  /// Also one that has ended.
  [[nodiscard]] const Node& process(ProcessId number) const {
    return *processes_[static_cast<std::size_t>(number)];
  }
  void run_process(ProcessId process);
  void end_process(int host, const std::string& how);
  void note_end(Node& node);
  void check_deadlines(const Node& node) const;
  void note_workers(const Node& node);
  void sample();
  [[nodiscard]] bool joins_anew(const Node& node);
  void check_stray(int number);
  void finish_round();
  void fail_peers_of(const Node& node);

  WorldOptions options_;
  Timeline timeline_;
  Random random_;
  Trace trace_;
  TimePoint zero_;
  Net net_;
  Checker checker_;
  std::vector<Host> hosts_;
  std::vector<std::unique_ptr<Node>> processes_;  // by number, also those that have ended
  std::set<ProcessId> woken_;
  std::set<int> paused_;
  std::set<ProcessId> noted_;
  std::vector<std::optional<Exit>> exits_;
  ProcessId last_process_ = kNoProcess;
  std::map<Checker::Key, int> running_;  // nodes whose workers of this round run
  bool finishing_ = false;
  std::set<Checker::Key> finished_;
  std::uint64_t steps_ = 0;
};

}  // namespace ddprun::failover
