// WorkerGroup: the workers of one node in one round, from the first spawn until none is left. They
// change state as one. Pure: takes an event and the time, returns what to do; no clock, process,
// log or I/O. Ownership: the shell of a round owns one, and a new
// round gets a new one.
//
//   init -> starting -> healthy -> straggling -> succeeded
//              |           |           |             ^
//              +-----------+-----------+--> stopping -> killing -> failed | stopped | succeeded
//                                              |            |
//                                              +------------+--> holding -> released
//
// With a time to rejoin, ranks that survive a change of the round are not stopped with the others:
// they are held until the next round is ordered, and then released to its group, which takes them
// as carried ranks. A stop takes them back.
//
// Where a failure may end the run, the other workers have the failure grace to end by themselves
// before they are signalled: an order of the next round, or a signal that ends the run, cuts it
// short.
//
// When a worker has ended, what it had started and left, in whatever process group or session, gets
// the stop signal with the others. Once no worker is left, it has kStragglerGrace after that signal
// and its worker's end, or the rest of the grace where a user has asked for the stop; after a
// success, the straggler timeout to end by itself. The group is over when nothing is left.
#pragma once

#include <chrono>
#include <initializer_list>
#include <optional>
#include <variant>
#include <vector>

#include "agent/config/launch_config.hpp"
#include "agent/node/kill_order.hpp"
#include "agent/watch/rank_watches.hpp"
#include "base/clock.hpp"
#include "base/exit_status.hpp"
#include "base/rank_progress.hpp"
#include "base/result.hpp"
#include "base/types.hpp"
#include "base/worker_exit.hpp"

namespace ddprun {

// From SIGTERM to SIGKILL of what a worker left behind.
inline constexpr Duration kStragglerGrace = std::chrono::seconds(2);
// A carried worker that cannot be told of the round, because its link has ended, is about to end:
// it has so long, then SIGKILL.
inline constexpr Duration kUntoldMax = std::chrono::seconds(2);
// Stragglers that end within this time are not logged.
inline constexpr Duration kStragglersQuietMax = std::chrono::seconds(1);

enum class GroupState {
  kInit,        // nothing was started
  kStarting,    // workers are spawned one after the other
  kHealthy,     // all were spawned, none has failed
  kStraggling,  // all ended with 0; what they left behind has time to end
  kStopping,    // those left, but for the held ones, have the failure grace, or the stop signal and
                // their grace
  kKilling,     // the same have SIGKILL
  kHolding,     // a worker failed, and only those that survive it are left
  kReleased,    // the next round takes those that are left; a stop takes them back
  kSucceeded,   // all ended with 0
  kFailed,      // a worker failed or could not be spawned first, and none is waited for any more
  kStopped,     // a stop of the run or the round came first, and none is waited for any more
};

struct Start {};
struct Spawned {
  LocalRank rank;
  bool told = true;  // of a carried worker; false: it cannot be told of this round
};
/// Also of a worker that was on its way when a stop began, and is given up.
struct SpawnFailed {
  enum class What { kWorker, kLogFiles };  // what could not be made for it
  LocalRank rank;
  Error error;
  What what = What::kWorker;
};
enum class LeftBehind { kNothing, kProcesses };
struct Exited {
  LocalRank rank;
  ExitStatus status = ExitStatus::exited(0);
  LeftBehind left = LeftBehind::kNothing;
};
struct GroupEmptied {
  LocalRank rank;
};  // what a worker left behind has ended, too
/// These workers make no progress any more, or are not waited for any longer; `rank` runs.
struct GivenUp {
  LocalRank rank;
};
struct StopRequested {
  int signal;
};  // a signal to ddprun that means: end the run
/// Of an ArmTimer; one that was replaced changes nothing.
struct TimerExpired {
  TimePoint deadline;
  std::vector<RankProgress> left{};  // while straggling: of each rank's processes that are left
};
/// The round is over elsewhere: these workers end, and none of them is to blame.
struct StopOrdered {
  int signal;
  Duration grace;
  bool stacks = false;  // a failure elsewhere complained of other ranks: what these do is evidence
  enum class Then { kEnd, kWait, kNextRound };
  Then then = Then::kEnd;  // else ranks that survive are for the next round, which may be ordered
  /// kFailure: it ends the run, and these workers have the failure grace. kRequest: of a user, on
  /// another node.
  enum class Cause { kRound, kFailure, kRequest };
  Cause cause = Cause::kRound;
};
/// The answer of AskStacks: these write them, and end.
struct StacksAsked {
  std::vector<LocalRank> ranks;
};
/// Whether this worker can take a new round without being started again.
struct Survives {
  LocalRank rank;
  bool survives = true;
};
/// A carried worker has taken this round.
struct Joined {
  LocalRank rank;
};
/// Not started: the carried one has ended after the order, and what it left behind has not.
struct PutOff {
  LocalRank rank;
};
using GroupEvent =
    std::variant<Start, Spawned, SpawnFailed, Exited, StopRequested, TimerExpired, StopOrdered,
                 GroupEmptied, GivenUp, StacksAsked, Survives, Joined, PutOff>;

/// Of a carried worker: it is told of this round.
struct Spawn {
  LocalRank rank;
};
struct Signal {
  LocalRank rank;
  int signal = 0;
  /// Of SIGKILL: to the worker alone, or when it has ended, to what it left but processes that end
  /// with their pipe.
  bool spares_pipe_ends = false;
};  // to the process group of the worker, or when it has ended, to what it left behind
struct ArmTimer {
  TimePoint deadline;
};                   // replaces the timer before it
struct LogFailure {  // this rank failed first, and others are stopped because of it
  LocalRank rank;
};
struct LogStop {  // a signal to ddprun stops the workers
  int signal;
};
struct Finish {};        // state() and the records are final
struct AllRunning {};    // every worker was spawned
struct AllSucceeded {};  // every worker exited with 0; what they left behind may still run
struct LogLeftBehind {   // what this rank left behind gets this signal now; 0: is waited for
  LocalRank rank;
  int signal = 0;
  bool quiet = false;  // after a success, since it makes no progress
};
struct FirstFailure {  // the exit that makes the round fail, before any worker is stopped
  LocalRank rank;
};
/// The last action: workers that can write their stacks do, and end. StacksAsked follows at once.
struct AskStacks {};
struct Disarm {};  // no timer is waited for
struct LogAgain {  // a carried worker has not taken the round: it is started again
  LocalRank rank;
  bool untold = false;  // it could not be told of it
};
struct Recovered {};  // all carried workers have taken the round, all others run
/// All workers exited with 0 in the round before, or instead of taking this one.
struct FinishedRoundBefore {};
using GroupAction = std::variant<Spawn, Signal, ArmTimer, LogFailure, LogStop, Finish, AllRunning,
                                 FirstFailure, LogLeftBehind, AllSucceeded, AskStacks, Disarm,
                                 LogAgain, Recovered, FinishedRoundBefore>;
using GroupActions = std::vector<GroupAction>;

/// What is known of one worker.
struct WorkerRecord {
  /// kLeaving: it has ended, and left processes in its group. kHeld: it runs, and waits for the
  /// next round.
  enum class Life { kWaiting, kSpawning, kRunning, kHeld, kLeaving, kEnded, kNeverStarted };
  /// Of a worker of an earlier round: kWaits: it is to be told of this one.
  enum class Carried { kNo, kWaits, kTold };
  Life life = Life::kWaiting;
  Carried carried = Carried::kNo;    // until it has taken this round
  bool survives = false;             // it can take a new round
  bool again = false;                // it had not taken this round: to be started again
  bool finished_before = false;      // one here exited with 0 in the round before
  bool is_spare = false;             // it has taken no round so far
  bool untold = false;               // it could not be told of this round
  TimePoint killed_at{};             // since it, or what it left, kept this round waiting
  std::optional<ExitStatus> status;  // once it has ended
  int first_signal = 0;              // the first that ddprun sent it while it lived; 0: none
  int last_signal = 0;
  bool asked = false;  // for its stacks, in the place of SIGKILL
  TimePoint ended_at{};
  [[nodiscard]] bool had_to_be_killed() const;
  [[nodiscard]] bool keeps_waiting() const;
};

class WorkerGroup {
 public:
  struct Options {
    int workers;
    Duration shutdown_timeout;  // from the stop signal to SIGKILL, unless a stop says otherwise
    Duration straggler_timeout = kStragglerTimeoutDefault;  // from the last success to SIGTERM
    /// Of a carried worker, to take the round; set: ranks that survive are held, not stopped.
    std::optional<Duration> rejoin_timeout{};
    std::vector<LocalRank> carried{};   // workers that run since an earlier round
    std::vector<LocalRank> finished{};  // ranks that exited with 0 in the round of those
    std::vector<LocalRank> spares{};    // of the carried ones: they were in no round
    Duration failure_grace{};           // --failure-grace
    bool may_be_last = false;           // a failure of this round may end the run
  };
  explicit WorkerGroup(Options options);

  /// Takes one event; returns what to do now, in order. Asserts that the pair is possible().
  [[nodiscard]] GroupActions step(const GroupEvent& event, TimePoint now);
  /// What fails from now on has no restart: the others have the failure grace.
  void run_ends() { may_be_last_ = true; }

  /// Whether `event` can reach a group in `state`; anything else is a bug of the shell.
  [[nodiscard]] static bool possible(GroupState state, const GroupEvent& event);

  [[nodiscard]] GroupState state() const { return state_; }
  /// A stop may yet take back what is released.
  [[nodiscard]] bool over() const { return state_ >= GroupState::kReleased; }
  /// The state that the group ends in: of what is released, failed or stopped.
  [[nodiscard]] GroupState outcome() const {
    return state_ == GroupState::kReleased ? ended_state() : state_;
  }
  [[nodiscard]] const WorkerRecord& worker(LocalRank rank) const;
  [[nodiscard]] std::vector<LocalRank> running() const { return all(WorkerRecord::Life::kRunning); }
  /// Ranks that wait for the next round.
  [[nodiscard]] std::vector<LocalRank> held() const { return all(WorkerRecord::Life::kHeld); }
  /// Whether the workers take part in this round: all, some, or none yet of those that were
  /// carried.
  enum class Taken { kByAll, kBySome, kByNone };
  [[nodiscard]] Taken taken() const;
  /// Ranks that exited with 0 before ddprun sent them anything.
  [[nodiscard]] std::vector<LocalRank> succeeded() const;
  /// Ranks that exited with 0 in the round that the others take part in. Not known if taken() is
  /// kBySome.
  [[nodiscard]] std::vector<LocalRank> finished() const;
  /// Ranks that ended and left processes in their groups.
  [[nodiscard]] std::vector<LocalRank> leaving() const { return all(WorkerRecord::Life::kLeaving); }
  /// The rank that failed first or was given up, if that ended the group.
  [[nodiscard]] const std::optional<LocalRank>& first_failure() const { return first_failure_; }
  /// Why no more workers could be spawned, if that ended the group.
  [[nodiscard]] const std::optional<SpawnFailed>& spawn_failure() const { return spawn_failure_; }
  /// From the first stop signal until none was waited for any more; 0 when none was stopped.
  [[nodiscard]] Duration stop_took() const;
  /// How long workers that were still running then had to end by themselves after the failure that
  /// ended the run; 0: all did, or had no such time.
  [[nodiscard]] Duration spared() const { return spared_; }
  /// While they have it: until when.
  [[nodiscard]] std::optional<TimePoint> spared_until() const {
    const bool spares = stop_order_.stage == StopStage::kSpared && state_ == GroupState::kStopping;
    return spares ? std::optional(deadline_) : std::nullopt;
  }
  /// The first signal that asked for the end of the run, 0 if none did.
  [[nodiscard]] int stop_signal() const { return stop_signal_; }

 private:
  void on(const Start&);
  void on(const Spawned& event);
  void on(const SpawnFailed& event);
  void on(const Exited& event);
  void on(const StopRequested& event);
  void on(const TimerExpired& event);
  void on(const StopOrdered& event);
  void on(const GroupEmptied& event);
  void on(const GivenUp& event);
  void on(const StacksAsked& event);
  void on(const Survives& event) { record(event.rank).survives = event.survives; }
  void on(const Joined& event);
  void on(const PutOff& event);
  void on_first_failure(LocalRank rank);
  void on_held_exit(LocalRank rank);
  void hold_survivors();
  [[nodiscard]] bool take_held_back();
  void hold();
  void give_way(const StopOrdered& event);
  void stop_anew(int signal, Duration spare = {});
  void start_again(const Exited& event);
  [[nodiscard]] bool finished(const Exited& event) const;
  void tell_if_all_finished();
  void spawn_again(LocalRank rank);
  void watch_joins();
  void arm_join_timer();
  void on_join_timer();
  [[nodiscard]] TimePoint joins_until(const WorkerRecord& worker) const;
  [[nodiscard]] bool runs_here() const { return state_ < GroupState::kStraggling; }
  void spawn_next();
  void begin_stop(int signal, Duration spare = {});
  void begin_straggling();
  void on_straggler_timer(const std::vector<RankProgress>& left);
  void advance_stop();
  void end_spare();
  void limit_what_is_left();
  void send(LocalRank rank, int signal);
  void send_to_all(int signal);
  [[nodiscard]] bool spares_pipe_ends() const {
    return state_ == GroupState::kKilling && stop_order_.stage == StopStage::kKilled;
  }
  void log_left_behind(int signal, bool quiet = false);
  void arm(Duration from_now);
  void finish_if_nothing_is_left();
  void finish(GroupState state);
  [[nodiscard]] GroupState ended_state() const;
  [[nodiscard]] bool any(std::initializer_list<WorkerRecord::Life> lives) const;
  [[nodiscard]] bool any_worker_left() const;
  [[nodiscard]] bool any_to_start_again() const;
  [[nodiscard]] bool anything_left() const;
  [[nodiscard]] std::vector<LocalRank> all(WorkerRecord::Life life) const;
  [[nodiscard]] WorkerRecord& record(LocalRank rank);

  GroupState state_ = GroupState::kInit;
  std::vector<WorkerRecord> workers_;
  Duration shutdown_timeout_;
  Duration straggler_timeout_;
  std::optional<Duration> rejoin_timeout_;
  Duration failure_grace_;
  bool may_be_last_;
  std::optional<LocalRank> spawning_;  // the last one that was ordered
  bool recovers_ = false;              // until carried workers have taken the round
  TimePoint joins_since_{};            // all ran: they are waited for
  bool released_ = false;              // the next round is ordered
  // Once all workers ended with 0: what they left, and when it is stopped unless it makes progress.
  std::optional<HangWatch> stragglers_;
  std::optional<TimePoint> stragglers_due_;
  std::optional<TimePoint> stragglers_told_at_;  // none: they are told
  // One of these began the stop: no later signal or order takes that back.
  std::optional<LocalRank> first_failure_;
  std::optional<SpawnFailed> spawn_failure_;
  std::optional<TimePoint> failed_at_;
  int stop_signal_ = 0;
  bool requested_ = false;  // a user asked for the stop, here or on another node
  StopRule stop_rule_;
  StopOrder stop_order_{StopStage::kNone, 0, Duration::zero()};  // the last that was given
  TimePoint deadline_{};
  TimePoint now_{};                      // of the event that is taken
  std::optional<TimePoint> stop_began_;  // the first stop signal
  TimePoint signalled_at_{};             // the stop signal of the stop that is under way
  std::optional<TimePoint> spared_since_;
  Duration spared_{};
  TimePoint over_at_{};
  GroupActions actions_;
};

}  // namespace ddprun
