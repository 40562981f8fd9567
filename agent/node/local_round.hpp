// LocalRound: one round on one node: files, spawns, exits and their evidence, stops, the end. It
// feeds a WorkerGroup, which knows the lives of the workers, and orders what follows. Pure: takes
// an event and the time, returns what to do; no clock, process, log or I/O. So the simulator runs
// the same code as the agent. Ownership: the shell of a round owns
// one, and a new round gets a new one.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "agent/node/local_round_events.hpp"
#include "agent/node/worker_group.hpp"
#include "base/clock.hpp"

namespace ddprun {

// After a rank failed with a complaint about others, these have so long to complain, too, or to
// fail for a reason of their own, before they are stopped.
inline constexpr Duration kHearing = std::chrono::milliseconds(500);
// How long the log of a worker that failed is waited for, before the others are stopped.
inline constexpr std::chrono::milliseconds kComplaintMax{200};
// How long evidence of a failure is waited for that lies in files of the log directory: the report
// goes out without what a file system that stalls does not give.
inline constexpr std::chrono::seconds kEvidenceMax{1};

class LocalRound {
 public:
  /// Whether other nodes have ranks of the round, too.
  enum class Elsewhere { kNoRanks, kRanks };
  struct Options {
    Round round{0};
    WorkerGroup::Options group;
    TimePoint run_started{};  // of ddprun, for the report
    Elsewhere elsewhere = Elsewhere::kNoRanks;
    Round before{0};  // of the carried ranks
  };
  LocalRound(Options options, TimePoint now);

  /// Takes one event; returns what to do now, in order.
  [[nodiscard]] local::Actions step(const local::Event& event, TimePoint now);

  /// Nothing of the round is waited for any more, and its failure was reported.
  [[nodiscard]] bool over() const { return group_.over() && !failure_is_unreported(); }
  /// Whether a worker failed and GroupFailed is still to come: its files are being read.
  [[nodiscard]] bool failure_is_unreported() const {
    return group_.first_failure() && !failure_reported_;
  }
  /// Whether the first worker waits for files or devices.
  [[nodiscard]] bool is_opening() const { return opening_.has_value(); }
  [[nodiscard]] const WorkerGroup& group() const { return group_; }
  /// Whether its exit is known, so that its output has an end.
  [[nodiscard]] bool has_exited(LocalRank rank) const { return worker(rank).exit.has_value(); }
  /// The ranks that run or are held, and of which no exit is known.
  [[nodiscard]] std::vector<LocalRank> living() const;
  /// The rank that stands for those that are given up; none: the round ends already.
  [[nodiscard]] std::optional<LocalRank> rank_of(const GiveUp& order) const;

  // When the round is over().
  /// The ranks that the next round takes over: until the moment when they are, a stop may take them
  /// back, and it is not over() any more.
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
  /// A worker in the end, as the shell sees it.
  struct AtEnd {
    WorkerName worker{};
    std::optional<std::string> line{};  // its likeness; none: its stderr is not seen here
    local::Raised raised{};
    int descendants = 0;                // that were ended with it, or after it
    std::vector<std::string> left{};    // the names of processes that it left and that live
    std::vector<StuckProcess> stuck{};  // of it, or of those, what SIGKILL did not end
  };
  /// `ends`: by local rank.
  [[nodiscard]] RoundResult result(const std::vector<AtEnd>& ends) const;

 private:
  struct Worker {
    std::optional<WorkerExit> exit{};
    TimePoint exited_at{};
    bool by_itself = false;  // it ended before any signal of ddprun, and before the round was over
    bool may_obey = false;   // its exit may be the answer to a stop signal
    local::Raised raised{};  // and not exited, before any signal
  };
  // A failure that the group has not been told of yet: it may be a witness, and the culprit may
  // fail a moment later, or others complain, too.
  struct Held {
    Exited exit;
    bool heard = false;  // whether it complained is known
  };
  using Ends = std::vector<AtEnd>;

  void on(const local::Begin& event);
  void on(const local::FilesOpened& event);
  void on(const local::DevicesReleased& event);
  void on(const local::SpawnDue& event) { spawn(event.rank); }
  void on(const local::Started& event);
  void on(const local::Told& event) { tell_group(Spawned{event.rank, event.told}); }
  void on(const local::Exited& event);
  void on(const local::Emptied& event);
  void on(const local::Survives& event);
  void on(const local::Joined& event);
  void on(const local::ComplaintFound& event);
  void on(const local::HearingOver& event);
  void on(const local::EvidenceFound& event);
  void on(const local::LookAsked&) { look(); }
  void on(const local::Looked& event);
  void on(const local::RaisedFound& event);
  void on(const local::GiveUpAsked& event);
  void on(const StopRequested& event);
  void on(const StopOrdered& event);
  void on(const StacksAsked& event);
  void on(const TimerExpired& event) { tell_group(event); }
  void act(const Spawn& action);
  void act(const Signal& action);
  void act(const ArmTimer& action) { actions_.emplace_back(action); }
  void act(const LogFailure& action);
  void act(const LogStop& action);
  void act(const LogLeftBehind& action);
  void act(const Finish& action);
  void act(const AllRunning& action);
  void act(const AllSucceeded& action);
  void act(const FirstFailure& action) { actions_.emplace_back(local::CatchUp{action.rank}); }
  void act(const AskStacks&) { actions_.emplace_back(local::AskStacks{group_.running()}); }
  void act(const Disarm&) { actions_.emplace_back(local::CancelTimer{}); }
  void act(const LogAgain& action);
  void act(const Recovered& action);
  void act(const FinishedRoundBefore& action);
  void tell_group(const GroupEvent& event);
  void take(const Exited& exit);
  void end_hearing();
  void look();
  void note_raised();
  void open_if_ready();
  void spawn(LocalRank rank);
  void give_up_opening();
  void give_up_spawn(LocalRank rank);
  void fail_to_spawn(const SpawnFailed& failure);
  void tell(client::Event event) { actions_.emplace_back(local::Tell{std::move(event)}); }
  void end_if_over();
  [[nodiscard]] bool runs_here() const { return group_.state() < GroupState::kStraggling; }
  [[nodiscard]] bool all_heard() const;
  [[nodiscard]] bool may_be_witness(const ExitStatus& status) const;
  [[nodiscard]] int running() const;
  void set_times(WorkerExit& exit) const;
  [[nodiscard]] const WorkerExit& first_failure() const;
  [[nodiscard]] std::optional<LocalRank> first_here() const;
  [[nodiscard]] bool failed_by_itself(std::size_t rank) const;
  [[nodiscard]] bool failed_in_grace(std::size_t rank) const;
  [[nodiscard]] bool failed_alike(std::size_t rank, const std::optional<LocalRank>& first,
                                  const Ends& ends) const;
  [[nodiscard]] std::vector<RankFacts> facts(const Ends& ends) const;
  [[nodiscard]] std::optional<WorkerExit> slow_failure() const;
  [[nodiscard]] std::optional<WorkerExit> other_failure(const std::optional<LocalRank>& first,
                                                        const Ends& ends) const;
  [[nodiscard]] Worker& worker(LocalRank rank);
  [[nodiscard]] const Worker& worker(LocalRank rank) const;

  const Options options_;
  WorkerGroup group_;
  TimePoint now_;             // of the event that is taken
  local::Actions actions_{};  // that follow from it
  std::size_t started_ = 0;   // workers that are not carried
  TimePoint since_;           // all workers run; before, this began
  std::vector<Worker> workers_;
  std::vector<Held> held_{};         // in the order of their ends
  bool hearing_ = false;             // one of them complained, and the timer is armed
  bool looks_ = false;               // what the ranks do was asked for
  std::vector<RankFacts> looked_{};  // by local rank; empty: nothing was noted
  std::vector<StoreWait> waits_{};   // seen at the same time
  TimePoint looked_at_{};
  bool raised_noted_ = false;
  std::optional<LocalRank> opening_{};  // the first worker, which waits for files and devices
  bool files_are_there_ = false;
  bool awaits_devices_ = false;
  std::optional<WorkerExit> given_up_{};  // what stands for the first failure then
  bool failure_reported_ = false;         // to the owner, with what the files say
  RoundResult::Logged death_logged_ = RoundResult::Logged::kNo;
  int told_signal_ = 0;                      // the last one whose beginning was told
  std::optional<std::string> error_json_{};  // of the worker that failed first
  bool ended_ = false;
};

}  // namespace ddprun
