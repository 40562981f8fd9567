// RoundDriver: the order of events in one round on one node: files, spawns, exits and their
// evidence, stops, the end. It feeds a WorkerGroup one event at a time and carries out its actions
// through RoundPorts. Pure but for its ports; so the simulator runs the same glue as the agent.
// Thread rule: one thread. Ownership: the ports outlive it; a new round gets a new one.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "agent/config/passed_signals.hpp"
#include "agent/node/round_ports.hpp"
#include "agent/node/round_result.hpp"
#include "agent/node/worker_group.hpp"
#include "agent/report/report.hpp"
#include "base/clock.hpp"
#include "rendezvous/client/membership/events.hpp"

namespace ddprun {

// After a rank failed with a complaint about others, these have so long to complain, too, or to
// fail for a reason of their own, before they are stopped.
inline constexpr Duration kHearing = std::chrono::milliseconds(500);

/// Why a round is given up although no worker of it has failed.
struct GiveUp {
  LocalRank rank{0};  // the first in question; another, if it has ended meanwhile
  int exit_code = 1;  // of the run, if no restart follows
  Finding why{};
  std::string log{};  // a file with the evidence; empty: the log of the rank
};

class RoundDriver {
 public:
  /// Whether other nodes have ranks of the round, too.
  enum class Elsewhere { kNoRanks, kRanks };
  /// `run_started`: of ddprun, for the report. `before`: the round of the carried ranks.
  RoundDriver(RoundPorts& ports, Round round, WorkerGroup::Options options, TimePoint run_started,
              Elsewhere elsewhere = Elsewhere::kNoRanks, Round before = Round(0));

  /// Once. After an earlier stop nothing is started.
  void begin();
  /// A signal that ends the run; the second one kills at once.
  void request_stop(int signal);
  /// The round is over elsewhere: ends the workers with `signal`, then, after `grace`, with
  /// SIGKILL. None of them is blamed.
  using Then = StopOrdered::Then;
  using Cause = StopOrdered::Cause;
  void end(int signal, Duration grace, Then then = Then::kEnd, Cause cause = Cause::kRound);
  void end(const client::StopGroup& order);
  /// Notes what all ranks do, before they are stopped: a failure elsewhere complained of others.
  /// After it, end() asks those that outlive the grace for their stacks.
  void look();
  /// A signal that every worker gets once, and that changes nothing here; unless forced, those that
  /// would end by it do not, nor those that ignore it.
  struct PassedOn {
    int ranks = 0;             // that got it
    std::vector<Rank> ends{};  // that would end by it
  };
  PassedOn pass_on(int signal, bool force = false);
  /// Of those that run: which would end by that signal.
  [[nodiscard]] std::vector<Rank> ended_by(int signal) const;

  // What follows on calls of RoundPorts.
  void files_opened(const Result<void>& logs, const Result<void>& program);
  void devices_released();
  void spawn_due(LocalRank rank) { spawn(rank); }
  void timer_expired(TimePoint deadline);
  void exited(LocalRank rank, ExitStatus status, LeftBehind left);
  void complaint_found(LocalRank rank, std::optional<Complaint> complaint);
  void hearing_over();
  /// What a worker left behind has ended.
  void emptied(LocalRank rank);
  /// A carried worker has taken this round.
  void joined(LocalRank rank);
  /// A worker has said that it can take another round.
  void survives(LocalRank rank);
  void evidence_found(RawEvidence raw);
  /// The ranks that run are stopped as if one of them had failed; unless the round ends already.
  void give_up(const GiveUp& order);

  /// Nothing of the round is waited for any more, and its failure was reported.
  [[nodiscard]] bool over() const { return group_.over() && !failure_is_unreported(); }
  /// Whether a worker failed and GroupFailed is still to come: its files are being read.
  [[nodiscard]] bool failure_is_unreported() const {
    return group_.first_failure() && !failure_reported_;
  }
  /// Whether the first worker waits for files or devices.
  [[nodiscard]] bool is_opening() const { return opening_.has_value(); }
  [[nodiscard]] const WorkerGroup& group() const { return group_; }
  /// The ranks that the next round takes over, once the driver is over(): until the moment when
  /// they are, a stop may take them back, and it is not over() any more.
  [[nodiscard]] std::vector<LocalRank> released() const {
    return group_.over() ? group_.held() : std::vector<LocalRank>();
  }
  /// The round that the released ranks take part in, and the ranks that finished it, unless the
  /// success of all was told; round 0: not all of them take part in the same one.
  struct Trained {
    Round round{0};
    std::vector<LocalRank> finished{};
  };
  [[nodiscard]] Trained trained() const;
  /// Whether its exit is known, so that its output has an end.
  [[nodiscard]] bool has_exited(LocalRank rank) const { return worker(rank).exit.has_value(); }
  /// When the driver is over().
  [[nodiscard]] RoundResult result() const;

 private:
  struct Worker {
    PassedSignals passed{};
    std::optional<WorkerExit> exit{};
    TimePoint exited_at{};
    bool by_itself = false;  // it ended before any signal of ddprun, and before the round was over
    bool may_obey = false;   // its exit may be the answer to a stop signal
    RoundPorts::Raised raised{};  // and not exited, before any signal
  };
  // A failure that the group has not been told of yet: it may be a witness, and the culprit may
  // fail a moment later, or others complain, too.
  struct Held {
    Exited exit;
    bool heard = false;  // whether it complained is known
  };

  void step(const GroupEvent& event);
  void take(const Exited& exit);
  void ask_survivors();
  void end_hearing();
  void note_raised();
  [[nodiscard]] bool all_heard() const;
  [[nodiscard]] bool may_be_witness(const ExitStatus& status) const;
  [[nodiscard]] std::optional<LocalRank> first_here() const;
  [[nodiscard]] bool failed_alike(std::size_t rank, const std::optional<LocalRank>& first) const;
  [[nodiscard]] std::vector<RankFacts> facts() const;
  void add_raised(RankFacts& facts) const;
  [[nodiscard]] std::vector<LocalRank> living() const;
  [[nodiscard]] std::optional<WorkerExit> slow_failure() const;
  [[nodiscard]] std::optional<WorkerExit> other_failure() const;
  [[nodiscard]] bool failed_by_itself(std::size_t rank) const;
  [[nodiscard]] bool failed_in_grace(std::size_t rank) const;
  void act(const Spawn& action);
  void act(const Signal& action);
  void act(const ArmTimer& action);
  void act(const LogFailure& action);
  void act(const LogStop& action);
  void act(const LogLeftBehind& action);
  void act(const Finish& action);
  void act(const AllRunning& action);
  void act(const AllSucceeded& action);
  void act(const FirstFailure& action);
  void act(const AskStacks& action);
  void act(const Disarm& action);
  void act(const LogAgain& action);
  void act(const Recovered& action);
  void act(const FinishedRoundBefore& action);
  void give_up_opening();
  void open_if_ready();
  void spawn(LocalRank rank);
  [[nodiscard]] Result<void> start(LocalRank rank);
  void give_up_spawn(LocalRank rank);
  [[nodiscard]] bool runs_here() const { return group_.state() < GroupState::kStraggling; }
  void fail_to_spawn(const SpawnFailed& failure);
  void end_if_over();
  [[nodiscard]] int running() const;
  void set_times(WorkerExit& exit, TimePoint at) const;
  [[nodiscard]] const WorkerExit& first_failure() const;
  [[nodiscard]] Worker& worker(LocalRank rank);
  [[nodiscard]] const Worker& worker(LocalRank rank) const;

  RoundPorts& ports_;
  const Round round_;
  const Round before_;
  WorkerGroup group_;
  TimePoint run_started_;
  Elsewhere elsewhere_;
  Duration straggler_timeout_;
  bool keeps_survivors_;
  std::size_t carried_;      // workers that run since an earlier round
  std::size_t started_ = 0;  // of the others
  TimePoint since_;          // all workers run; before, this began
  std::vector<Worker> workers_;
  std::vector<Held> held_;         // in the order of their ends
  bool hearing_ = false;           // one of them complained, and the timer is armed
  std::vector<RankFacts> looked_;  // by local rank; empty: nothing was noted
  std::vector<StoreWait> waits_;   // seen at the same time
  TimePoint looked_at_{};
  bool raised_noted_ = false;
  std::optional<LocalRank> opening_;  // the first worker, which waits for files and devices
  bool files_are_there_ = false;
  bool awaits_devices_ = false;
  std::optional<WorkerExit> given_up_{};  // what stands for the first failure then
  bool failure_reported_ = false;         // to the owner, with what the files say
  RoundResult::Logged death_logged_ = RoundResult::Logged::kNo;
  std::optional<std::string> error_json_;  // of the worker that failed first
  bool ended_ = false;
};

}  // namespace ddprun
