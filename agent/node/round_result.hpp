// RoundResult: how a round ended on this node, and what of it the membership and the user learn.
// Plain data. Pure, no thread rule.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "agent/node/worker_group.hpp"
#include "agent/report/lines.hpp"
#include "agent/report/report.hpp"
#include "base/store_wait.hpp"
#include "base/worker_exit.hpp"
#include "rendezvous/client/membership/events.hpp"

namespace ddprun {

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
