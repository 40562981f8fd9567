// The phases of a run. Each owns what exists only in it, above all its deadlines: a phase is
// entered by making its object, so nothing of the phase before is left. docs/internals/STATES.md
// draws the transitions; Run makes them. Pure, no thread rule.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "rendezvous/round/claims.hpp"
#include "rendezvous/round/culprit.hpp"
#include "rendezvous/round/duplicate_hello.hpp"
#include "rendezvous/round/hang_check.hpp"
#include "rendezvous/round/join_pace.hpp"
#include "rendezvous/round/live_round.hpp"
#include "rendezvous/round/status.hpp"

namespace ddprun::round {

using Deadline = std::optional<TimePoint>;

// An agent answers a round at once, before it stops or starts anything; one that takes longer is
// broken.
inline constexpr Duration kAnswerMax = std::chrono::seconds(10);
// Before they give up ranks that hang they save the stacks of all, in two seconds.
inline constexpr Duration kGiveUpMax = std::chrono::seconds(10);
// Between two announcements of a wait.
inline constexpr Duration kAnnounceInterval = std::chrono::seconds(1);

/// When the wait of a run is announced to all its agents: however many join, that happens at most
/// once per interval.
class Announcer {
 public:
  /// There is news of the wait.
  void request(TimePoint now) {
    if (!due_) due_ = std::max(now, last_) + kAnnounceInterval;
  }
  void cancel() { due_.reset(); }
  /// Whether to announce now; the next announcement needs a request of its own.
  [[nodiscard]] bool take_due(TimePoint now) {
    if (!due_ || now < *due_) return false;
    due_.reset();
    last_ = now;
    return true;
  }
  [[nodiscard]] const Deadline& due() const { return due_; }

 private:
  Deadline due_;
  TimePoint last_{};
};

/// The deadlines of a phase. What agents owe is due only with a Tick, when everything that was
/// received before it has been read, and a stall of the coordinator extends it.
struct Deadlines {
  std::array<Deadline*, 4> owed{};
  std::array<Deadline*, 3> others{};
};

/// How a run ended.
struct Ended {
  protocol::Done verdict;
  TimePoint at;
  int nodes = 0;  // of its last round
};

/// No round lives: waits for enough agents to start one.
struct Forming {
  Deadline join_deadline{};       // set while any agent is connected
  Deadline last_call{};           // set while enough agents are connected for the first round
  Deadline restart_at{};          // not sooner, after quick failures
  Deadline store_deadline{};      // for the next rank 0 to open its store
  Deadline abandoned_at{};        // set while no agent is connected: the end of the run
  Agent* awaited = nullptr;       // the next rank 0, whose store is not open yet
  bool survivors_stopped = true;  // whether the agents of the ended round have their stop

  [[nodiscard]] Deadlines deadlines() {
    return {{&join_deadline, &store_deadline}, {&last_call, &restart_at, &abandoned_at}};
  }
};

/// Another coordinator started a round that agents know of: waits for its members to reconnect.
struct Rebuilding {
  Deadline deadline{};
  ClaimedPlaces places{};
  Deadline majority_until{};   // set while a majority of a round is here: others may follow
  Deadline return_deadline{};  // set, as `deadline`, once it waits for as long as for any node

  [[nodiscard]] Deadlines deadlines() { return {{&deadline, &return_deadline}, {&majority_until}}; }
};

/// A round lives.
struct Running {
  LiveRound round;
  Deadline answer_deadline{};    // for its members to take it on
  Deadline question_deadline{};  // for its members to answer a question
  HangCheck hang{};
  Deadline hang_deadline{};    // for its members to give their ranks up
  Deadline return_deadline{};  // for silent members, without which no round may be formed
  std::vector<protocol::Stopped> given_up{};  // of those that have done so
  Deadline welcome_at{};                      // until then all that wait to join are held back

  /// Asks all members that have not succeeded; an answer comes behind all that its node said.
  void ask(TimePoint now, Outbox& out);
  /// What this member owes an answer to was lost with its link: its time begins again.
  void ask_again(const Agent& agent, TimePoint now, Outbox& out);
  /// Waits for no answer any longer: an agent without one has the silence limit, and may be only
  /// suspended.
  void withdraw_questions();
  /// Members that have not taken it on in time. One whose hello waits has its time again.
  [[nodiscard]] std::vector<Agent*> take_unanswering(const DuplicateHellos& duplicates,
                                                     TimePoint now);
  /// The hosts that the next round may start for. While all have to wait they are not looked at
  /// with every message.
  [[nodiscard]] std::vector<std::string> newcomers(const Roster& roster, const JoinPace& pace,
                                                   TimePoint now);
  /// Whether this node gave its ranks up as it was ordered to. The others save their stacks, too,
  /// before the round ends.
  [[nodiscard]] bool gave_up(const Agent& agent) const;
  /// Orders what is next where ranks of all nodes make no progress. Returns the node with the
  /// failure of the round, once all have given theirs up, or are late; null: there is none.
  [[nodiscard]] Agent* settle_hang(bool is_late, TimePoint now, Outbox& out);
  [[nodiscard]] Deadlines deadlines() {
    return {{&answer_deadline, &question_deadline, &hang_deadline, &return_deadline},
            {&welcome_at}};
  }

 private:
  [[nodiscard]] Agent* end_hang(TimePoint now);
};

// Before anything was received.
inline constexpr TimePoint kLongAgo{};

/// The verdict is known, and is sent when no worker is left: until then nodes tell what their ranks
/// did, and which failure was the first one, or its cause, may become known last.
struct Stopping {
  protocol::Done verdict{};
  AgentId failed_agent{};  // where the verdict's failure was
  TimePoint failed_at{};   // when it was reported; kLongAgo if a lost node cannot be its cause
  std::string why_no_restart{};  // of that failure, for people
  LiveRound round{};             // whose workers end
  bool requested = false;        // a stop was: workers that handle one have time to save
  Deadline deadline{};

  /// The run ends with this failure.
  void blame(const Failure& failure);
  void count(const protocol::Stopped& stopped);
  /// The workers of this node have ended, after a failure.
  void hear(const Agent& agent, const protocol::Stopped& stopped, TimePoint now);
  /// The loss of this node can be noticed after the failure elsewhere that it caused. A node that
  /// has sent nothing since that failure was lost before it; one that sends heartbeats was not.
  [[nodiscard]] bool is_explained_by(const Agent& lost) const;
  /// All have, or are not waited for any longer.
  void conclude(RestartCount restarts, const Roster& roster);

  [[nodiscard]] Deadlines deadlines() { return {{&deadline}, {}}; }

 private:
  /// The first failure on a node, and how many of its ranks failed like that.
  struct FailedAlike {
    AgentId agent{};
    std::optional<WorkerExit> failure{};
    int alike = 0;
  };
  void keep_other(const Agent& agent, const WorkerExit& failure);
  void count_alike(RunFailure& failure) const;
  void name_culprit(RunFailure& failure);
  void name_other(RunFailure& failure) const;

  std::vector<RankOnHost> ranks_{};  // what their agents said of them
  std::vector<FailedAlike> alike_{};
  std::vector<WorkerExit> others_{};  // that failed by themselves, a few
  std::vector<StoreWait> waits_{};    // what the node that serves the store said of its clients
};

/// The verdict was sent; the agents disconnect.
struct Over {
  Ended ended;
  Deadline linger_until;  // agents still connected then are not waited for
  bool finished = false;  // Finish was returned

  [[nodiscard]] Deadlines deadlines() { return {{finished ? nullptr : &linger_until}, {}}; }
};

/// In the order of Phase.
using PhaseState = std::variant<Forming, Rebuilding, Running, Stopping, Over>;

/// The round whose workers run or end; null in other phases.
[[nodiscard]] const LiveRound* live_round(const PhaseState& state);
[[nodiscard]] inline LiveRound* live_round(PhaseState& state) {
  return const_cast<LiveRound*>(live_round(std::as_const(state)));
}
/// How long it has lived. Of one of another coordinator that is not known: no reason to delay a
/// restart.
[[nodiscard]] Duration lived(const PhaseState& state, TimePoint now);

}  // namespace ddprun::round
