#include "rendezvous/round/phases.hpp"

#include <algorithm>
#include <utility>

#include "base/exit_status.hpp"
#include "rendezvous/round/reasons.hpp"

namespace ddprun::round {

using namespace protocol;

namespace {

// Failures beside the first that are kept, of which one is named.
constexpr std::size_t kOthersMax = 8;

/// Whether two ranks failed in the same way; those that said nothing did if they ended so.
[[nodiscard]] bool failed_alike(const WorkerExit& one, const WorkerExit& other) {
  const std::string line = likeness_of(one);
  const std::string other_line = likeness_of(other);
  if (line.empty() && other_line.empty()) return one.status == other.status;
  return is_alike(one.status, line, other.status, other_line);
}

}  // namespace

void Running::ask(TimePoint now, Outbox& out) {
  const int question = out.next_question();
  for (Agent* member : round.members()) {
    if (member == nullptr || member->silent_since) continue;  // it is not waited for
    if (member->state == NodeState::kSucceeded) continue;
    round.ask(*member, question);
    out.send(member->link, Beat{question});
  }
  question_deadline = now + kAnswerMax;
}

void Running::ask_again(const Agent& agent, TimePoint now, Outbox& out) {
  if (!agent.answered) answer_deadline = now + kAnswerMax;
  if (agent.question == 0) return;
  out.send(agent.link, Beat{agent.question});
  question_deadline = now + kAnswerMax;
}

void Running::withdraw_questions() {
  question_deadline.reset();
  for (Agent* member : round.members()) {
    if (member != nullptr) round.echoed(*member, member->question);
  }
}

std::vector<Agent*> Running::take_unanswering(const DuplicateHellos& duplicates, TimePoint now) {
  answer_deadline.reset();
  std::vector<Agent*> agents;
  for (Agent* agent : round.members()) {
    if (agent == nullptr || agent->answered || agent->silent_since) continue;
    if (duplicates.waits(agent->hello.agent)) {
      answer_deadline = now + kDuplicateMax;
    } else {
      agents.push_back(agent);
    }
  }
  return agents;
}

std::vector<std::string> Running::newcomers(const Roster& roster, const JoinPace& pace,
                                            TimePoint now) {
  std::vector<std::string> hosts;
  if (welcome_at && now < *welcome_at) return hosts;
  welcome_at.reset();
  for (const Agent* agent : roster.by_silence()) {
    if (round.has(*agent)) continue;
    if (!pace.holds_back(*agent, now)) {
      hosts.push_back(agent->host());
      continue;
    }
    const TimePoint until = pace.pace_of(agent->peer.address, now).until;
    welcome_at = std::min(welcome_at.value_or(until), until);
  }
  return hosts;
}

bool Running::gave_up(const Agent& agent) const {
  return round.has(agent) && hang.gives_up() && agent.failure && agent.failure->given_up;
}

Agent* Running::settle_hang(bool is_late, TimePoint now, Outbox& out) {
  const auto order = [&](std::optional<int> question) {
    for (const Agent* member : round.members()) {
      const bool runs = member != nullptr && member->state == NodeState::kRunning;
      if (runs) out.send(member->link, Hang{round.stamp().number, question});
    }
  };
  switch (hang.next(round.nodes() - round.finished())) {
    case HangCheck::Order::kNothing:
      return is_late || (hang.gives_up() && !hang.waits()) ? end_hang(now) : nullptr;
    case HangCheck::Order::kLook: {
      const int question = out.next_question();
      hang.asked(question, now);
      order(question);
      return nullptr;
    }
    case HangCheck::Order::kGiveUp:
      hang_deadline = now + kGiveUpMax;
      order(std::nullopt);
      return nullptr;
  }
  return nullptr;
}

Agent* Running::end_hang(TimePoint now) {
  std::vector<Agent*> nodes;
  std::vector<WorkerExit> exits;
  for (Agent* member : round.members()) {
    const bool has = member != nullptr && member->failure && member->failure->given_up;
    if (!has) continue;
    nodes.push_back(member);
    exits.push_back(*member->failure);
  }
  hang.begin_again();
  hang_deadline.reset();
  if (nodes.empty()) {  // their links broke, or their ranks ended for other reasons
    given_up.clear();
    return nullptr;
  }
  const std::size_t first = merge_hangs(exits);
  Agent& agent = *nodes[first];
  agent.failure = exits[first];
  round.add({now, agent.hello.agent, exits[first], round.stamp().number});
  return &agent;
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

bool Stopping::is_explained_by(const Agent& lost) const {
  if (!verdict.failure || !round.has(lost)) return false;
  // Of one whose silence was known the failure is a consequence that its round has waited for.
  const bool was_known = lost.call != 0;
  return is_active(lost.state) && lost.heard < failed_at && !was_known;
}

void Stopping::conclude(RestartCount restarts, const Roster& roster) {
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
  // One console has the whole report: that of the coordinator, else where the failure was.
  const auto& agents = roster.by_silence();
  const auto own = std::find_if(agents.begin(), agents.end(),
                                [](const Agent* agent) { return agent->hello.runs_coordinator; });
  verdict.reporter = own != agents.end() ? (*own)->hello.agent.value() : failed_agent.value();
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

const LiveRound* live_round(const PhaseState& state) {
  if (const auto* running = std::get_if<Running>(&state)) return &running->round;
  const auto* stopping = std::get_if<Stopping>(&state);
  return stopping != nullptr ? &stopping->round : nullptr;
}

Duration lived(const PhaseState& state, TimePoint now) {
  const LiveRound* round = live_round(state);
  return round != nullptr ? round->lived(now) : Duration::max();
}

}  // namespace ddprun::round
