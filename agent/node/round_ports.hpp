// RoundPorts: what RoundDriver needs done: files, processes, a timer, evidence and lines for the
// user. The agent implements it with the kernel, the simulator with its world. Thread rule: the
// driver's thread.
#pragma once

#include <signal.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "agent/node/worker_group.hpp"
#include "agent/report/lines.hpp"
#include "base/clock.hpp"
#include "base/rank_progress.hpp"
#include "base/result.hpp"
#include "base/store_wait.hpp"
#include "base/types.hpp"
#include "base/worker_exit.hpp"
#include "rendezvous/client/membership/events.hpp"

namespace ddprun {

// How long the log of a worker that failed is waited for, before the others are stopped.
inline constexpr std::chrono::milliseconds kComplaintMax{200};
// How long evidence of a failure is waited for that lies in files of the log directory: the report
// goes out without what a file system that stalls does not give.
inline constexpr std::chrono::seconds kEvidenceMax{1};

struct GiveUp;

/// How ranks were brought back on this node without all of them being started.
struct Recovery {
  int kept = 0;         // run since an earlier round
  int started = 0;      // again
  int from_spares = 0;  // had waited for a place; for the driver these are kept ones
};

/// No call may end the driver. What happens later is fed back to the driver with the functions
/// named here.
class RoundPorts {
 public:
  RoundPorts() = default;
  RoundPorts(const RoundPorts&) = delete;
  RoundPorts& operator=(const RoundPorts&) = delete;
  virtual ~RoundPorts() = default;

  [[nodiscard]] virtual TimePoint now() const = 0;

  /// Makes the log files and finds the program: files_opened() follows, later.
  virtual void open_files() = 0;
  /// These are not waited for any longer: files_opened() does not follow.
  virtual void give_up_files() = 0;
  /// Of a node where an earlier round has ended. True: the devices that its workers used may still
  /// be held, and devices_released() follows, later, in bounded time.
  [[nodiscard]] virtual bool await_devices() = 0;
  /// spawn_due() follows, later: between two spawns, signals and exits are looked at.
  virtual void post_spawn(LocalRank rank) = 0;
  /// Of a worker that is to be started. True: one whose end is known is not gone yet, and
  /// spawn_due() follows, later, in bounded time.
  [[nodiscard]] virtual bool await_room(LocalRank rank) {
    static_cast<void>(rank);
    return false;
  }
  /// Starts the worker: exited() follows, later, and after LeftBehind::kProcesses emptied(). After
  /// an error nothing follows.
  [[nodiscard]] virtual Result<void> start_worker(LocalRank rank) = 0;
  /// Whether a worker that runs can take a new round without being started again.
  [[nodiscard]] virtual bool survives(LocalRank rank) const {
    static_cast<void>(rank);
    return false;
  }
  /// A worker that runs since an earlier round is told of this one: joined() follows, later, or
  /// exited(), or nothing. False: it cannot be told.
  [[nodiscard]] virtual bool tell_round(LocalRank rank) {
    static_cast<void>(rank);
    return true;
  }
  /// To the process group of a worker, or when it has ended, to what it left behind. SIGKILL: to
  /// all that it has started.
  virtual void signal_group(LocalRank rank, int signal) = 0;
  /// SIGKILL to a worker alone: what it started gets it when it has ended, but for processes that
  /// end with their pipe. When it has ended: to what it left, with the same exception.
  virtual void kill_but_pipe_ends(LocalRank rank) { signal_group(rank, SIGKILL); }
  /// Of these workers, which outlived their grace: those that write their stacks when they are
  /// aborted are, without what they have started. Returns which.
  [[nodiscard]] virtual std::vector<LocalRank> abort_with_stacks(
      const std::vector<LocalRank>& ranks) = 0;
  /// Whether a worker may answer that signal by an exit of its own: it handles or blocks it.
  [[nodiscard]] virtual bool may_handle(LocalRank rank, int signal) const = 0;
  /// What a signal that is passed on does to a worker: it handles or blocks it, or the signal ends
  /// nothing; it ignores it; it would end by it.
  enum class Answer { kTakes, kIgnores, kEnds };
  [[nodiscard]] virtual Answer answer_to(LocalRank rank, int signal) const {
    static_cast<void>(rank);
    static_cast<void>(signal);
    return Answer::kTakes;
  }
  /// To the worker alone, without what it has started.
  virtual void signal_worker(LocalRank rank, int signal) = 0;
  /// Replaces the timer before it; timer_expired() follows.
  virtual void arm_timer(TimePoint deadline) = 0;
  virtual void cancel_timer() = 0;

  /// Who a worker that was started is.
  [[nodiscard]] virtual WorkerName name_of(LocalRank rank) const = 0;
  /// What is known of an exit now but for its order and status: name, wall clock, log.
  [[nodiscard]] virtual WorkerExit describe_exit(LocalRank rank) const = 0;
  /// What the kernel counts of the processes that ranks have left, in the same order each time.
  [[nodiscard]] virtual std::vector<RankProgress> progress_of_left(
      const std::vector<LocalRank>& ranks) const {
    static_cast<void>(ranks);
    return {};
  }
  /// The names of the processes that a worker left behind and that live.
  [[nodiscard]] virtual std::vector<std::string> left_behind(LocalRank rank) const = 0;
  /// Whether a worker that failed by itself complained of other ranks, in what it wrote:
  /// complaint_found() follows, at once or later.
  virtual void look_for_complaint(LocalRank rank, const ExitStatus& status) = 0;
  /// hearing_over() follows.
  virtual void arm_hearing(TimePoint deadline) = 0;
  /// What all workers do now, those that have ended included.
  [[nodiscard]] virtual std::vector<RankFacts> look_at_ranks() = 0;
  /// The last line of a worker's stderr, where that passes through here; none: it does not.
  [[nodiscard]] virtual std::optional<std::string> last_line(LocalRank rank) const {
    static_cast<void>(rank);
    return std::nullopt;
  }
  /// The exception with which the output of a worker ends; of one that complains of others while it
  /// handles an exception of its own, that one, and the complaint.
  struct Raised {
    std::string exception{};  // empty: none is known
    TimePoint at{};
    std::optional<Complaint> complaint{};
  };
  [[nodiscard]] virtual Raised raised(LocalRank rank) {
    static_cast<void>(rank);
    return {};
  }
  /// Who waits for which key in the round's store, if this node serves it.
  [[nodiscard]] virtual std::vector<StoreWait> look_at_store() { return {}; }
  /// Of a worker that SIGKILL did not end, or of what it left: its processes that live.
  [[nodiscard]] virtual std::vector<StuckProcess> stuck(LocalRank rank) const = 0;
  /// How many processes that a worker had started were ended with it or after it.
  [[nodiscard]] virtual int descendants_ended(LocalRank rank) const = 0;
  /// A worker has failed: what it wrote is read now, as far as it is there, before the signals to
  /// the others make them write.
  virtual void catch_up(LocalRank rank) = 0;
  /// Reads what that worker left in files: evidence_found() follows, at once or later.
  virtual void look_for_evidence(LocalRank rank) = 0;

  /// `event` is about to be taken by the group; for observers.
  virtual void on_event(const GroupEvent& event) { static_cast<void>(event); }
  /// The ranks that run are about to be given up; for observers.
  virtual void gave_up(const GiveUp& order) { static_cast<void>(order); }
  /// The group took an event, and its actions follow; for observers.
  virtual void on_step() {}

  // Lines for the user.
  virtual void log_failure(const WorkerExit& first, int others) = 0;
  virtual void log_stop(int signal, int workers) = 0;
  virtual void log_left_behind(const LeftBehindFacts& facts) = 0;
  /// It had not taken the round when it ended, or was ended: it is started again.
  virtual void log_again(const WorkerName& worker, const ExitStatus& status) {
    static_cast<void>(worker);
    static_cast<void>(status);
  }
  virtual void recovered(const Recovery& recovery) { static_cast<void>(recovery); }

  /// The membership takes it, and may answer with end(): GroupRunning, GroupSucceeded,
  /// FinishedBefore, GroupFailed with its evidence.
  virtual void tell(client::Event event) = 0;
  virtual void spawn_failed(const SpawnFailed& failure) = 0;
  /// The driver is over(): what is left is to read the output of the workers that exited.
  virtual void round_over() = 0;
};

}  // namespace ddprun
