// local_round_events: the events that a LocalRound takes and the actions that it orders, between
// one round of a node and the shell around it. Plain data.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "agent/node/worker_group.hpp"
#include "agent/report/lines.hpp"
#include "agent/report/report.hpp"
#include "base/clock.hpp"
#include "base/rank_progress.hpp"
#include "base/result.hpp"
#include "base/store_facts.hpp"
#include "base/types.hpp"
#include "base/worker_exit.hpp"
#include "rendezvous/client/membership/events.hpp"

namespace ddprun {

/// Why a round is given up although no worker of it has failed.
struct GiveUp {
  LocalRank rank{0};  // the first in question; another, if it has ended meanwhile
  int exit_code = 1;  // of the run, if no restart follows
  Finding why{};
  std::string log{};  // a file with the evidence; empty: the log of the rank
};
/// How ranks were brought back on this node without all of them being started.
struct Recovery {
  int kept = 0;         // run since an earlier round
  int started = 0;      // again
  int from_spares = 0;  // had waited for a place; for the round these are kept ones
};

/// How a round ended.
struct RoundResult {
  GroupState state = GroupState::kInit;     // succeeded, failed or stopped
  std::optional<WorkerExit> failure{};      // the first
  Shown shown = Shown::kNo;                 // what the report would quote of it, on stderr
  std::optional<std::string> error_json{};  // what that worker wrote to TORCHELASTIC_ERROR_FILE
  std::vector<Unkillable> unkillable{};     // SIGKILL did not end them
  int stopped = 0;                          // workers that ddprun stopped
  int killed = 0;                           // of these, the ones that needed SIGKILL
  int descendants = 0;                      // that workers had started, and ddprun ended
  Duration stop_took{};  // from the first stop signal until none was waited for any more
  Duration spared{};     // see WorkerGroup::spared()
  enum class Logged { kNo, kYes };
  Logged death_logged = Logged::kNo;  // whether the first failure was given its line
  std::string death_line{};           // that line, if it is still to be told

  std::vector<RankFacts> ranks{};  // where the failure was a witness, or the run asked
  std::vector<StoreWait> waits{};  // at the same time, if this node serves the round's store
  // Of a worker that failed by itself, though another failure or a stop came first.
  std::optional<WorkerExit> other_failure{};
  int alike = 0;                // workers that failed in the same way as the first
  std::vector<RankLog> logs{};  // of the workers that wrote one, for the report
  std::string own_workers{};    // what was said of a script that starts its own; empty: nothing

  [[nodiscard]] StopFacts stop_facts() const {
    return {stopped, killed, static_cast<int>(unkillable.size()), stop_took};
  }
  /// A worker that is still alive after SIGKILL; empty: none, or the round succeeded.
  [[nodiscard]] std::string unkillable_worker() const;
  /// The line of a failure that has had none; empty: there is no such failure.
  [[nodiscard]] std::string untold_death_line() const;
  [[nodiscard]] CleanupFacts cleanup_facts() const {
    return {stopped, descendants, static_cast<int>(unkillable.size()), stop_took};
  }
};

/// What the membership learns of it; after a success no more than that it is over.
[[nodiscard]] client::GroupGone gone(Round round, const RoundResult& result);

}  // namespace ddprun

namespace ddprun::local {

/// Once. After an earlier stop nothing is started.
struct Begin {};
/// The answer of OpenFiles, later.
struct FilesOpened {
  Result<void> logs{};
  Result<void> program{};
};
/// The answer of AwaitDevices, at once or later.
struct DevicesReleased {};
/// The answer of PostSpawn, later, and of a StartWorker that had to wait for room.
struct SpawnDue {
  LocalRank rank;
};
/// The answer of StartWorker, before any other event: Exited follows, and after
/// LeftBehind::kProcesses Emptied. After an error nothing follows.
struct Started {
  LocalRank rank;
  Result<void> started{};
};
/// The answer of TellRound, before any other event; false: it cannot be told. Joined follows, or
/// Exited, or nothing.
struct Told {
  LocalRank rank;
  bool told = true;
};
struct Exited {
  WorkerExit exit;  // all that is known but for its times and complaint
  LeftBehind left = LeftBehind::kNothing;
  bool may_obey = false;  // it handles or blocks a stop signal that it got after the first failure
};
/// The processes that a worker left behind have ended.
struct Emptied {
  LocalRank rank;
};
/// Whether a worker that runs can take another round, as it said over its link.
struct Survives {
  LocalRank rank;
  bool survives = true;
};
/// A carried worker has taken this round.
struct Joined {
  LocalRank rank;
};
/// The answer of LookForComplaint, at once or later.
struct ComplaintFound {
  LocalRank rank;
  std::optional<Complaint> complaint{};
};
/// The time of ArmHearing is over.
struct HearingOver {};
/// The answer of LookForEvidence, at once or later.
struct EvidenceFound {
  RawEvidence raw;
};
/// Notes what all ranks do, before they are stopped: a failure elsewhere complained of others.
/// After it, an ordered stop asks those that outlive the grace for their stacks.
struct LookAsked {};
/// The answer of Look, after the actions that came with it.
struct Looked {
  std::vector<RankFacts> ranks{};  // by local rank, those that have ended included
  std::vector<StoreWait> waits{};  // in the round's store, if this node serves it
};
/// The exception with which the output of a worker ends; of one that complains of others while it
/// handles an exception of its own, that one, and the complaint.
struct Raised {
  std::string exception{};  // empty: none is known
  TimePoint at{};
  std::optional<Complaint> complaint{};
};
/// The answer of ReadRaised, after the actions that came with it.
struct RaisedFound {
  std::vector<std::pair<LocalRank, Raised>> ranks{};
};
/// The ranks that run are stopped as if one of them had failed, unless the round ends already.
/// `exit`: what is known of LocalRound::rank_of().
struct GiveUpAsked {
  GiveUp order;
  WorkerExit exit;
};
/// A signal that ends the run; the second one kills at once.
using ddprun::StopRequested;
/// The round is over elsewhere; see there.
using ddprun::StopOrdered;
[[nodiscard]] StopOrdered stop_ordered(const client::StopGroup& order);
/// The answer of AskStacks, before any other event.
using ddprun::StacksAsked;
/// The time of an ArmTimer has come.
using ddprun::TimerExpired;

using Event =
    std::variant<Begin, FilesOpened, DevicesReleased, SpawnDue, Started, Told, Exited, Emptied,
                 Survives, Joined, ComplaintFound, HearingOver, EvidenceFound, LookAsked, Looked,
                 RaisedFound, GiveUpAsked, StopRequested, StopOrdered, StacksAsked, TimerExpired>;

/// Makes the log files and finds the program: FilesOpened follows, later.
struct OpenFiles {};
/// These are not waited for any longer: FilesOpened does not follow.
struct GiveUpFiles {};
/// The devices that workers of an earlier round used may still be held: DevicesReleased follows, in
/// bounded time.
struct AwaitDevices {};
/// SpawnDue follows, later: between two spawns, signals and exits are looked at.
struct PostSpawn {
  LocalRank rank;
};
/// Started follows; or later SpawnDue, if one whose end is known is not gone yet.
struct StartWorker {
  LocalRank rank;
};
/// A worker that runs since an earlier round is told of this one: Told follows.
struct TellRound {
  LocalRank rank;
};
/// To the process group of a worker, or when it has ended, to what it left behind. SIGKILL: to all
/// that it has started; unless it spares processes that end with their pipe, then to the worker
/// alone, or when it has ended, to what it left but those.
using ddprun::Signal;
/// Of these workers, which outlived their grace: those that write their stacks when they are
/// aborted are, without what they have started. The last action; StacksAsked follows.
struct AskStacks {
  std::vector<LocalRank> ranks{};
};
/// Replaces the timer before it; TimerExpired follows.
using ddprun::ArmTimer;
struct CancelTimer {};
/// Whether a worker that failed by itself complained of other ranks, in what it wrote.
struct LookForComplaint {
  LocalRank rank;
};
struct ArmHearing {
  TimePoint deadline;
};
/// The shell looks at what all workers do, before they are stopped: Looked follows.
struct Look {};
/// The shell reads what these workers raised, before a stop makes them write.
struct ReadRaised {
  std::vector<LocalRank> ranks{};
};
/// A worker has failed: what it wrote is read now, as far as it is there, before the signals to the
/// others make them write.
struct CatchUp {
  LocalRank rank;
};
/// Reads what that worker left in files.
struct LookForEvidence {
  LocalRank rank;
};
/// The membership takes it, and may answer with StopOrdered.
struct Tell {
  client::Event event;
};
/// A worker could not be started; the node leaves the run.
struct TellSpawnFailed {
  SpawnFailed failure;
};
/// Nothing of the round is waited for any more: what is left is to read the output of the workers
/// that exited.
struct Over {};

// For observers.
/// The exit counts from now on: a witness is heard first.
struct ExitTaken {
  LocalRank rank;
  ExitStatus status = ExitStatus::exited(0);
  int signal = 0;  // the first that ddprun had sent it; 0: none
};
/// Signals to so many workers follow, or to what is left of others.
struct SignalsBegin {
  int signal = 0;
  int workers = 0;
};
/// A worker is not started.
struct SpawnGivenUp {
  SpawnFailed failure;
};
struct GaveUp {
  GiveUp order;
};

// Lines for the user.
struct LogFailure {
  WorkerExit first;
  int others = 0;
};
struct LogStop {
  int workers = 0;
};
struct LogLeftBehind {
  LocalRank rank;
  int signal = 0;  // that it gets now; 0: it is waited for
  bool quiet = false;
  Duration since_exit{};
};
/// It had not taken the round when it ended, or was ended: it is started again.
struct LogAgain {
  WorkerName worker;
  ExitStatus status = ExitStatus::exited(0);
  bool untold = false;  // it could not be told of the round
};
struct LogRecovery {
  Recovery recovery;
};

using Action =
    std::variant<OpenFiles, GiveUpFiles, AwaitDevices, PostSpawn, StartWorker, TellRound, Signal,
                 AskStacks, ArmTimer, CancelTimer, LookForComplaint, ArmHearing, Look, ReadRaised,
                 CatchUp, LookForEvidence, Tell, TellSpawnFailed, Over, ExitTaken, SignalsBegin,
                 SpawnGivenUp, GaveUp, LogFailure, LogStop, LogLeftBehind, LogAgain, LogRecovery>;
using Actions = std::vector<Action>;

}  // namespace ddprun::local
