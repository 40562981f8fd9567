#include "rendezvous/round/phases.hpp"

#include <algorithm>
#include <utility>

#include "base/exit_code.hpp"
#include "rendezvous/round/reasons.hpp"

namespace ddprun::round {

using namespace protocol;

namespace {

// Failures beside the first that are kept, of which one is named.
constexpr std::size_t kOthersMax = 8;

/// Whether two ranks failed in the same way; those that said nothing did if they ended so.
[[nodiscard]] bool failed_alike(const WorkerExit& one, const WorkerExit& other) {
  const std::string line = telling_line(one);
  const std::string other_line = telling_line(other);
  if (line.empty() && other_line.empty()) return one.status == other.status;
  return is_alike(one.status, line, other.status, other_line);
}

void extend_to(Deadline& deadline, TimePoint until) {
  if (deadline) deadline = std::max(*deadline, until);
}

}  // namespace

void Forming::extend(TimePoint until) {
  extend_to(join_deadline, until);
  extend_to(store_deadline, until);
}

void Rebuilding::extend(TimePoint until) {
  deadline = std::max(deadline, until);
  extend_to(return_deadline, until);
}

void Running::extend(TimePoint until) {
  extend_to(answer_deadline, until);
  extend_to(question_deadline, until);
  extend_to(hang_deadline, until);
  extend_to(return_deadline, until);
}

void Stopping::extend(TimePoint until) {
  deadline = std::max(deadline, until);
}

void Stopping::blame(const Failure& failure) {
  failed_agent = failure.agent;
  verdict.exit_code = exit_code_of_run(failure.exit.status);
  verdict.text = reasons::failed(failure.exit) + "; " + why_no_restart;
  RunFailure& told = *verdict.failure;
  told.first = failure.exit;
  told.finding = std::exchange(told.first.given_up, std::nullopt);
  told.round = failure.round;
}

void Stopping::count(const Stopped& stopped) {
  RunFailure& failure = *verdict.failure;
  failure.stopped += stopped.stopped;
  failure.killed += stopped.killed;
  failure.stop_took = std::max(failure.stop_took, stopped.took);
  failure.spared = std::max(failure.spared, stopped.spared);
}

void Stopping::hear(const Agent& agent, const Stopped& stopped, TimePoint now) {
  count(stopped);
  const bool in_grace = stopped.failure && stopped.failure->in_grace;
  alike_.push_back({agent.hello.agent, in_grace ? stopped.failure : agent.failure, stopped.alike});
  for (const RankFacts& facts : stopped.ranks) ranks_.push_back({facts, agent.host()});
  waits_.insert(waits_.end(), stopped.waits.begin(), stopped.waits.end());
  const RunFailure& told = *verdict.failure;
  if (stopped.round != told.round) return;
  const bool is_first = agent.hello.agent == failed_agent;
  if (!is_first && agent.failure) keep_other(agent, *agent.failure);
  if (!stopped.failure) return;
  if (in_grace && told.first.complaint) return;  // it may be another witness
  keep_other(agent, *stopped.failure);
  if (in_grace || stopped.failure->is_slow) return;
  Failure later{now, agent.hello.agent, *stopped.failure, stopped.round};
  later.exit.worker.host = agent.host();
  round.add(std::move(later));
}

void Stopping::keep_other(const Agent& agent, const WorkerExit& failure) {
  if (others_.size() == kOthersMax) return;
  others_.push_back(failure);
  others_.back().worker.host = agent.host();
}

void Stopping::conclude(RestartCount restarts) {
  std::optional<RunFailure>& failure = verdict.failure;
  // While the workers ended, an earlier failure of the same round may have been reported.
  const std::optional<Failure>& first = round.first_failure();
  if (failure && first && first->round == failure->round) blame(*first);
  if (!failure && round.nodes() > 0 && round.all_succeeded()) {
    const std::string text = reasons::success(round.world_size(), round.nodes(), restarts);
    verdict = Done{kExitSuccess, text};
  }
  if (!failure) return;
  count_alike(*failure);
  name_culprit(*failure);
  name_other(*failure);
}

// Witnesses are named by the finding.
void Stopping::count_alike(RunFailure& failure) const {
  for (const FailedAlike& node : alike_) {
    if (node.agent == failed_agent) {
      failure.alike += node.alike;
      continue;
    }
    if (!node.failure || failure.first.complaint || node.failure->complaint) continue;
    if (failed_alike(failure.first, *node.failure)) failure.alike += node.alike + 1;
  }
}

// A rank that gave up because of another one is a witness, and the culprit may be silent.
void Stopping::name_culprit(RunFailure& failure) {
  if (!failure.first.complaint) return;
  for (const Agent* agent : round.members()) {
    if (agent == nullptr || agent->state != NodeState::kSucceeded) continue;
    for (int i = 0; i < agent->hello.local_world_size; ++i) {
      RankFacts facts;
      facts.rank = Rank(agent->placement.rank_base.value() + i);
      facts.local_rank = LocalRank(i);
      facts.end = RankEnd::kSucceeded;
      ranks_.push_back({facts, agent->host()});
    }
  }
  join_waits(ranks_, waits_);
  failure.finding = find_culprit(failure.first, ranks_, round.world_size());
  if (!failure.finding || failure.finding->ranks.empty()) return;
  verdict.text = failure.finding->text + "; " + why_no_restart;
}

// One that failed otherwise, after the first: it may tell more, and ddprun did not stop it.
void Stopping::name_other(RunFailure& failure) const {
  if (failure.finding) return;
  for (const WorkerExit& other : others_) {
    const bool is_it = other.worker == failure.first.worker || other.complaint || other.given_up;
    if (is_it || failed_alike(failure.first, other)) continue;
    failure.also = reasons::also_failed(other, failure.first);
    return;
  }
}

}  // namespace ddprun::round
