// How a run ends: the verdict is known (Stopping), and sent when no worker is left (Over).
#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/exit_code.hpp"
#include "rendezvous/protocol/limits.hpp"
#include "rendezvous/round/median.hpp"
#include "rendezvous/round/run.hpp"

namespace ddprun::round {

using namespace protocol;

namespace {

// Failures beside the first that are kept, of which one is named.
constexpr std::size_t kOthersMax = 8;

/// How long the verdict waits for the workers of these nodes: for as long as half of them may need.
/// One node alone, by mistake or on purpose, does not keep all others.
[[nodiscard]] Milliseconds shared_stop_wait(std::vector<Milliseconds> timeouts) {
  if (timeouts.empty()) return Milliseconds(0);
  return std::min(lower_median(std::move(timeouts)), kStopWaitMax);
}

/// Whether two ranks failed in the same way; those that said nothing did if they ended so.
[[nodiscard]] bool failed_alike(const WorkerExit& one, const WorkerExit& other) {
  if (one.lines.empty() && other.lines.empty()) return one.status == other.status;
  if (one.lines.empty() || other.lines.empty()) return false;
  return is_alike(one.status, one.lines.back(), other.status, other.lines.back());
}

}  // namespace

void Run::finish(Done verdict) {
  Stopping stopping;
  stopping.verdict = std::move(verdict);
  stop(std::move(stopping));
}

/// With the failure that was to be answered by a restart.
void Run::finish_failed(NoRestart no_restart, TimePoint heard_at) {
  Stopping stopping;
  RunFailure& failure = stopping.verdict.failure.emplace();
  failure.no_restart = std::move(no_restart.why);
  failure.no_retry = std::move(no_restart.no_retry);
  stopping.failed_at = heard_at;
  blame(stopping, *restarts_.answered());
  stopping.round.add(*restarts_.answered());  // what ends in the stop of a wait came after it
  stop(std::move(stopping));
}

void Run::blame(Stopping& stopping, const Failure& failure) const {
  stopping.failed_agent = failure.agent;
  Done& verdict = stopping.verdict;
  verdict.exit_code = exit_code_of_run(failure.exit.status);
  verdict.text = reasons::failed(failure.exit) + "; " + reason_for_no_restart(*verdict.failure);
  verdict.failure->first = failure.exit;
  verdict.failure->finding = std::exchange(verdict.failure->first.given_up, std::nullopt);
  verdict.failure->round = failure.round;
  verdict.failure->repeated = restarts_.repeated_text();
}

// The verdict is sent when no worker is left, so that no agent exits while workers are alive.
void Run::stop(Stopping stopping) {
  DDPRUN_ASSERT(in<Stopping>() == nullptr && in<Over>() == nullptr);
  if (auto* running = in<Running>()) stopping.round = std::move(running->round);
  why_ = stopping.verdict.text;
  announcer_.cancel();
  Stopping& entered = enter(std::move(stopping));
  const bool has_members = entered.round.present() > 0;
  std::vector<Milliseconds> timeouts;
  for (Agent* agent : roster_.by_silence()) {
    if (!has_members || is_member(*agent)) timeouts.push_back(agent->hello.stop_timeout);
    if (is_active(agent->state)) send_stop(*agent, why_);
  }
  entered.deadline = now_ + shared_stop_wait(std::move(timeouts)) + kStopMargin;
}

void Run::send_stop(Agent& agent, const std::string& reason) {
  roster_.set_state(agent, NodeState::kStopping);
  Stop stop{agent.runs, 15, agent.hello.stop_timeout, reason};
  const auto* stopping = in<Stopping>();
  if (stopping != nullptr) stop.verdict = stopping->verdict;
  stop.waits = in<Forming>() != nullptr;
  stop.requested = stopping != nullptr && stopping->requested;
  if (stop.waits && restarts_.has_answered({agent.runs, agent.last.author}))
    stop.restarts = restarts_.used().value();
  send(agent.link, std::move(stop));
}

void Run::settle(Stopping& stopping) {
  if (roster_.active() == 0 || is_due(stopping.deadline)) conclude(stopping);
}

void Run::conclude(Stopping& stopping) {
  // While the workers ended, an earlier failure of the same round may have been reported.
  const std::optional<Failure>& first = stopping.round.first_failure();
  const std::optional<RunFailure>& told = stopping.verdict.failure;
  if (told && first && first->round == told->round) blame(stopping, *first);
  const LiveRound& round = stopping.round;
  if (!told && round.nodes() > 0 && round.all_succeeded()) {
    const int ranks = round.world_size();
    stopping.verdict = Done{kExitSuccess, reasons::success(ranks, round.nodes(), restarts_.used())};
  }
  count_alike(stopping);
  name_culprit(stopping);
  name_other(stopping);
  stopping.verdict.reporter = reporter(stopping);
  why_ = stopping.verdict.text;
  const int nodes = stopping.round.nodes();
  const Over& over =
      enter(Over{Ended{std::move(stopping.verdict), now_, nodes}, now_ + kLingerMax});
  note(Level::kInfo, why_);  // the agents print it
  for (const Agent* agent : roster_.by_silence()) {
    // No agent believes a success as the first word.
    if (!agent->greeted && agent->runs == Round(0)) send(agent->link, waiting(why_));
    send(agent->link, over.ended.verdict);
  }
}

/// A node tells what its ranks did, when the last of them has gone.
void Run::hear(Stopping& stopping, const Agent& agent, const Stopped& stopped) {
  for (const RankFacts& facts : stopped.ranks) stopping.ranks.push_back({facts, agent.host()});
  stopping.waits.insert(stopping.waits.end(), stopped.waits.begin(), stopped.waits.end());
  const RunFailure& told = *stopping.verdict.failure;
  if (stopped.round != told.round) return;
  const bool is_first = agent.hello.agent == stopping.failed_agent;
  if (!is_first && agent.failure) keep_other(stopping, agent, *agent.failure);
  if (!stopped.failure) return;
  const bool in_grace = stopped.failure->in_grace;
  if (in_grace && told.first.complaint) return;  // it may be another witness
  keep_other(stopping, agent, *stopped.failure);
  if (in_grace || stopped.failure->is_slow) return;
  Failure later{now_, agent.hello.agent, *stopped.failure, stopped.round};
  later.exit.worker.host = agent.host();
  stopping.round.add(std::move(later));
}

void Run::keep_other(Stopping& stopping, const Agent& agent, const WorkerExit& failure) {
  if (stopping.others.size() == kOthersMax) return;
  stopping.others.push_back(failure);
  stopping.others.back().worker.host = agent.host();
}

// One that failed otherwise, after the first: it may tell more, and ddprun did not stop it.
void Run::name_other(Stopping& stopping) const {
  std::optional<RunFailure>& failure = stopping.verdict.failure;
  if (!failure || failure->finding) return;
  const WorkerExit& first = failure->first;
  for (const WorkerExit& other : stopping.others) {
    const bool is_it = other.worker == first.worker || other.complaint || other.given_up;
    if (is_it || failed_alike(first, other)) continue;
    failure->also = reasons::also_failed(other, first);
    return;
  }
}

// Which failure is the first one may become known last. Witnesses are named by the finding.
void Run::count_alike(Stopping& stopping) {
  std::optional<RunFailure>& failure = stopping.verdict.failure;
  if (!failure) return;
  const WorkerExit& first = failure->first;
  for (const Stopping::FailedAlike& node : stopping.alike) {
    if (node.agent == stopping.failed_agent) {
      failure->alike += node.alike;
      continue;
    }
    if (!node.failure || first.complaint || node.failure->complaint) continue;
    if (failed_alike(first, *node.failure)) failure->alike += node.alike + 1;
  }
}

// A rank that gave up because of another one is a witness, and the culprit may be silent.
void Run::name_culprit(Stopping& stopping) const {
  std::optional<RunFailure>& failure = stopping.verdict.failure;
  if (!failure || !failure->first.complaint) return;
  for (const Agent* agent : stopping.round.members()) {
    if (agent == nullptr || agent->state != NodeState::kSucceeded) continue;
    for (int i = 0; i < agent->hello.local_world_size; ++i) {
      RankFacts facts;
      facts.rank = Rank(agent->placement.rank_base.value() + i);
      facts.local_rank = LocalRank(i);
      facts.end = RankEnd::kSucceeded;
      stopping.ranks.push_back({facts, agent->host()});
    }
  }
  join_waits(stopping.ranks, stopping.waits);
  failure->finding = find_culprit(failure->first, stopping.ranks, stopping.round.world_size());
  if (!failure->finding || failure->finding->ranks.empty()) return;
  stopping.verdict.text = failure->finding->text + "; " + reason_for_no_restart(*failure);
}

std::string Run::reason_for_no_restart(const RunFailure& failure) const {
  return failure.no_restart.empty() ? reasons::no_restart_left(terms()) : failure.no_restart;
}

// One console has the whole report: that of the coordinator, else where the failure was.
std::string Run::reporter(const Stopping& stopping) const {
  if (!stopping.verdict.failure) return "";
  for (const Agent* agent : roster_.by_silence()) {
    if (agent->hello.runs_coordinator) return agent->hello.agent.value();
  }
  return stopping.failed_agent.value();
}

void Run::settle(Over& over) {
  if (over.finished || (!roster_.empty() && now_ < over.linger_until)) return;
  over.finished = true;
  actions_.emplace_back(Finish{over.ended.verdict.exit_code, over.ended.verdict.text});
}

// A member that missed the verdict gets it; so does a late agent when there is nothing left to do
// for it.
void Run::late_hello(const Over& over, const Received& received, const Hello& hello) {
  const LinkId link = received.link;
  const Done& verdict = over.ended.verdict;
  const std::string text = reasons::over(options_.run_id, now_ - over.ended.at, verdict);
  const std::optional<Refused> other =
      run_terms_ && !hello.claim ? refuse_command(hello, *run_terms_) : std::nullopt;
  if (other) {
    ++counters_.refusals;
    note_refusal(hello, *other);
    send(link, as_told(*other, received, hello));
  } else if (hello.claim && rounds_.is_of_run(hello.claim->stamp, hello.claim->succession.origin)) {
    send(link, verdict);
  } else if (verdict.exit_code == 0 && !hello.claim) {  // ranks of another run have no part in it
    if (run_terms_) send(link, waiting(text));  // an agent believes no success as the first word
    send(link, Done{0, text});
  } else {
    ++counters_.refusals;
    send(link, Refused{RefusalCode::kRunOver, text, Milliseconds(0)});
  }
  close(link);
}

}  // namespace ddprun::round
