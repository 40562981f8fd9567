// The phases of a run. Each owns what exists only in it, above all its deadlines: a phase is
// entered by making its object, so nothing of the phase before is left. docs/internals/STATES.md
// draws the transitions; Run makes them. Plain data, no thread rule.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "rendezvous/round/claims.hpp"
#include "rendezvous/round/culprit.hpp"
#include "rendezvous/round/hang_check.hpp"
#include "rendezvous/round/live_round.hpp"
#include "rendezvous/round/status.hpp"

namespace ddprun::round {

using Deadline = std::optional<TimePoint>;

/// The deadlines of a phase. What agents owe is due only with a Tick, when everything that was
/// received before it has been read, and a stall of the coordinator extends it.
struct Deadlines {
  std::array<Deadline, 4> owed{};
  std::array<Deadline, 3> others{};
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

  [[nodiscard]] Deadlines deadlines() const {
    return {{join_deadline, store_deadline}, {last_call, restart_at, abandoned_at}};
  }
  void extend(TimePoint until);
};

/// Another coordinator started a round that agents know of: waits for its members to reconnect.
struct Rebuilding {
  TimePoint deadline{};
  ClaimedPlaces places{};
  Deadline majority_until{};   // set while a majority of a round is here: others may follow
  Deadline return_deadline{};  // set, as `deadline`, once it waits for as long as for any node

  [[nodiscard]] Deadlines deadlines() const { return {{deadline}, {majority_until}}; }
  void extend(TimePoint until);
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

  [[nodiscard]] Deadlines deadlines() const {
    return {{answer_deadline, question_deadline, hang_deadline, return_deadline}, {welcome_at}};
  }
  void extend(TimePoint until);
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
  TimePoint deadline{};

  /// The run ends with this failure.
  void blame(const Failure& failure);
  void count(const protocol::Stopped& stopped);
  /// The workers of this node have ended, after a failure.
  void hear(const Agent& agent, const protocol::Stopped& stopped, TimePoint now);
  /// All have, or are not waited for any longer.
  void conclude(RestartCount restarts);

  [[nodiscard]] Deadlines deadlines() const { return {{deadline}, {}}; }
  void extend(TimePoint until);

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
  TimePoint linger_until;  // agents still connected then are not waited for
  bool finished = false;   // Finish was returned

  [[nodiscard]] Deadlines deadlines() const {
    return {{}, {finished ? std::nullopt : Deadline(linger_until)}};
  }
  void extend(TimePoint until) { linger_until = std::max(linger_until, until); }
};

/// In the order of Phase.
using PhaseState = std::variant<Forming, Rebuilding, Running, Stopping, Over>;

}  // namespace ddprun::round
