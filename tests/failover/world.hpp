// World: a cluster of which any node may coordinate the run, with its wires, faults and checks.
// Deterministic: everything is decided by the options. Single thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/failover/lineage.hpp"
#include "tests/failover/net.hpp"
#include "tests/sim/world.hpp"

namespace ddprun::failover {

class Server;

struct WorldOptions : sim::WorldOptions {
  WorldOptions() {
    coordinator_timeout = seconds(10);
    spawn_min = stop_min = Duration(0);
    spawn_max = milliseconds(20);
    stop_max = milliseconds(50);
    stop_grace = milliseconds(500);
    work = std::chrono::hours(1000);  // until finish()
  }
  int nodes = 3;
  int workers = 1;      // of each node
  Duration turn_max{};  // until a process that is woken runs
};

/// Host N is node N of the cluster.
class World final : public sim::World {
 public:
  explicit World(const WorldOptions& options);
  ~World() override;
  class Process;
  struct Sent {
    protocol::StartRound start;
    AgentId to;
  };

  void after(Duration time, std::function<void()> what) { timeline().after(time, std::move(what)); }

  // What happens to hosts and processes. Each does nothing where it cannot be.
  void start_all();
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
  /// From now on workers succeed when all of their round run.
  void finish();

  // What is.
  [[nodiscard]] const WorldOptions& options() const { return several_; }
  [[nodiscard]] const Lineage& lineage() const { return lineage_; }
  /// The process on this host; null: none lives there.
  [[nodiscard]] const Process* process(int host) const;
  [[nodiscard]] bool agent_lives(int host) const;
  [[nodiscard]] bool is_paused(int host) const { return paused_.contains(host); }
  [[nodiscard]] bool is_reached(int from, int to) const override;
  /// The number of the last round that it has taken on; 0: none.
  [[nodiscard]] int round_at(int host) const;
  [[nodiscard]] bool works(int host) const;
  /// The coordinator that this agent is connected to; null: none.
  [[nodiscard]] const Server* coordinator_of(int host) const;
  /// The workers of all members of this agent's round run, and its coordinator lives.
  [[nodiscard]] bool runs_round(int host) const;
  /// Every agent has ended, runs in the one round, or waits as a spare. Else `why`.
  [[nodiscard]] bool is_calm(std::string* why, std::set<std::string>* coordinators = nullptr) const;
  [[nodiscard]] std::string picture() const;

 private:
  struct Host {
    std::unique_ptr<Process> process;
    bool had_coordinator = false;
    std::optional<TimePoint> stray_since;  // its workers run for no coordinator
    Lineage::Key works_for{};              // the round whose workers run; number 0: none
  };
  [[nodiscard]] Host& host(int number) { return hosts_[index(number)]; }
  [[nodiscard]] const Host& host(int number) const { return hosts_[index(number)]; }

  // sim::World.
  void make_agent(int host) override;
  void connect(int host, const client::Connect& order) override;
  void close_link(int host, client::LinkId link) override;
  void send(int host, const client::SendMessage& order) override;
  void coordinate(int host, const client::Coordinate& order) override;
  void withdraw(int host) override;
  [[nodiscard]] client::MembershipOptions membership_options(int host) const override;
  [[nodiscard]] sim::Checker::Coordinated coordinated(int) const override {
    return sim::Checker::Coordinated::kNo;  // not by one that knows how all ended
  }
  void after_end(int host) override;
  void exit_process(int host) override;
  void lose_process(int host, Gone how) override;
  /// A process finds what happened to it when it runs.
  [[nodiscard]] bool stands_still(int host) const override { return host != runs_now_; }
  void hold(int host, std::function<void()> what) override;
  void on_step(int host, const node::Stepped& step) override;
  void arm_agent(int host, TimePoint deadline) override;

  void wake(ProcessId process);
  void run_process(ProcessId process);
  void run_held(int host);
  void end_process(int host);
  void let_run(int host);
  void on_sent(int host, const protocol::Message& message);
  /// All of one step of a Run. `base`: the settled round that it measures by.
  void on_rounds_sent(const std::vector<Sent>& rounds, const protocol::RoundStamp& base);
  void on_round_taken(int host, const protocol::RoundStamp& before,
                      const protocol::StartRound& start);
  [[nodiscard]] bool are_one_run(const Server& left, const Server& right) const;
  /// Nodes whose workers of this round run.
  [[nodiscard]] int working(const protocol::RoundStamp& stamp) const;
  void check_deadlines(int host) const;
  void note_workers(int host, bool works);
  void sample();
  [[nodiscard]] bool joins_anew(int host);
  void check_stray(int host);
  void finish_round();

  const WorldOptions several_;
  Net net_;
  Lineage lineage_;
  std::vector<Host> hosts_;
  std::vector<int> host_of_process_;
  std::set<ProcessId> woken_;
  std::set<int> paused_;
  int runs_now_ = -1;                    // the host whose process has its turn
  std::map<Lineage::Key, int> working_;  // nodes whose workers of this round run
  bool finishing_ = false;
  std::set<Lineage::Key> finished_;
};

}  // namespace ddprun::failover
