// Running: what the agents report of a round, and what follows; ranks that make no progress
// (--hang-timeout).
#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/signals.hpp"
#include "rendezvous/round/run.hpp"

namespace ddprun::round {

using namespace protocol;

// Newcomers are admitted once all members have answered: any number that join together cost one
// round. After a stall their hellos are read in any order with successes that came before them.
void Run::settle(Running& running) {
  if (is_due(running.question_deadline)) running.withdraw_questions();
  if (is_due(running.answer_deadline)) {
    const Round round = rounds_.last().number;
    for (Agent* agent : running.take_unanswering(duplicates_, now_)) drop(*agent, round);
    return;
  }
  if (const Agent* agent = running.settle_hang(is_due(running.hang_deadline), now_, out_)) {
    const std::vector<Stopped> given_up = std::move(running.given_up);
    on_failure(*agent);
    auto* stopping = in<Stopping>();
    if (stopping == nullptr) return;
    for (const Stopped& stopped : given_up) stopping->count(stopped);
    return;
  }
  const LiveRound& round = running.round;
  const bool newcomers = roster_.size() > round.present() && round.nodes() < terms().nodes_max;
  const bool settled = round.finished() == 0 && round.unanswered() == 0 && roster_.away() == 0 &&
                       roster_.silent() == 0;
  if (!newcomers || !settled || unread_) return;
  const std::vector<std::string> hosts = running.newcomers(roster_, join_pace_, now_);
  if (!hosts.empty()) end_round(reasons::joined(hosts));
}

// Reports that were on their way when newcomers were read, or a link broke; and those of ranks that
// finished the round before instead of taking this one. A success of all ranks is one of the run,
// whatever was begun meanwhile.
bool Run::completes_interrupted(const Agent& agent, const Report& report) {
  const bool counts =
      report.state == NodeState::kSucceeded && in<Stopping>() == nullptr && in<Over>() == nullptr;
  if (!counts) return false;
  const Rounds::Interrupted* round = rounds_.complete(agent.hello.agent, report.round);
  if (round == nullptr) return false;
  finish(Done{kExitSuccess, reasons::success(round->world_size, round->nodes, restarts_.used())});
  return true;
}

// The fence: only the last round an agent was given counts, and it moves the run only while that
// round lives.
void Run::take(Agent& agent, const Report& report) {
  if (completes_interrupted(agent, report)) return;
  if (report.round != agent.last.number) {
    ++counters_.stale;
    return;
  }
  agent.store_port = report.store_port;
  const bool told_to_stop =
      agent.state == NodeState::kStopping || agent.state == NodeState::kStopped;
  // A node succeeds once in a round, and counts once.
  const bool succeeded = agent.state == NodeState::kSucceeded;
  const bool news = report.state != agent.state && !told_to_stop && !succeeded;
  if (news) roster_.set_state(agent, report.state);
  hear_of_left(agent, report.state, report.round);
  LiveRound* round = is_member(agent) ? live_round(state_) : nullptr;
  auto* running = in<Running>();
  auto* stopping = in<Stopping>();
  // Its workers had exited with 0 when the stop reached it. If all nodes say so, nothing was
  // stopped.
  const bool succeeds_before_stop = report.state == NodeState::kSucceeded &&
                                    agent.state == NodeState::kStopping && round != nullptr &&
                                    stopping != nullptr && !stopping->verdict.failure;
  if (succeeds_before_stop) {
    roster_.set_state(agent, NodeState::kSucceeded);
    round->succeeded(agent);
  }
  if (report.state == NodeState::kRunning && news) {
    agent.running_at = now_;
    if (round != nullptr) round->runs(now_);
  }
  if (report.state == NodeState::kFailed && !agent.failure) {
    DDPRUN_ASSERT(report.failure.has_value());  // the codec refuses a report without it
    agent.failure = report.failure;
    agent.failure->worker.host = agent.host();
    roster_.recount(agent);
    if (auto* rebuilding = in<Rebuilding>()) rebuilding->places.ended(agent);
    const TimePoint at = std::min(now_, agent.running_at + agent.failure->after);
    if (running != nullptr && running->gave_up(agent)) return running->hang.forget(agent.arrival);
    if (round != nullptr) round->add({at, agent.hello.agent, *agent.failure, report.round});
  }
  const bool all_run = running != nullptr && roster_.starting() == 0;
  if (all_run && !restarts_.has_answered(rounds_.last())) restarts_.forget_answered();
  if (round == nullptr) return;
  count_answer(agent);
  if (running == nullptr || !news) return;
  if (report.state == NodeState::kFailed) return on_failure(agent);
  if (report.state != NodeState::kSucceeded) return;
  running->hang.succeeded(agent.arrival, now_);
  round->succeeded(agent);
  if (round->all_succeeded()) return check_success();
  out_.send(agent.link, waiting(reasons::finishing(round->finished(), round->nodes())));
}

/// A member has taken on the live round.
void Run::count_answer(Agent& agent) {
  LiveRound& round = *live_round(state_);
  const bool first = !agent.answered;
  round.answered(agent);
  if (!agent.silent_since) authority_.take_claim(agent, round.stamp());
  if (!first || in<Running>() == nullptr || !agent.succession.has_vote) return;
  if (authority_.vote()) round.tell_settled(out_);
}

void Run::on_failure(const Agent& agent) {
  const Round round = agent.last.number;
  const WorkerExit& exit = *agent.failure;
  if (restarts_.has_answered(agent.last)) {
    return end_round(reasons::restart(exit, restarts_.used(), terms(), Duration(0)));
  }
  auto no_restart =
      restarts_.answer({now_, agent.hello.agent, exit, round}, lived(state_, now_), terms());
  if (no_restart) return finish_failed(std::move(*no_restart), now_);
  end_round(reasons::restart(exit, restarts_.used(), terms(), restarts_.delay()),
            restarts_.restart_at(now_));
}

void Run::check_success() {
  const LiveRound& round = in<Running>()->round;
  if (!round.all_succeeded()) return;
  finish(Done{kExitSuccess, reasons::success(round.world_size(), round.nodes(), restarts_.used())});
}

bool Run::succeeds_with(const std::vector<Received>& reports) const {
  const auto* running = in<Running>();
  if (running == nullptr || running->round.first_failure()) return false;
  const LiveRound& round = running->round;
  const auto reports_it = [&](const Agent& member) {
    return std::any_of(reports.begin(), reports.end(), [&](const Received& received) {
      const auto* report = std::get_if<Report>(&received.message);
      return received.link == member.link && report != nullptr &&
             report->state == NodeState::kSucceeded && report->round == round.stamp().number;
    });
  };
  const auto& members = round.members();
  const auto more = std::count_if(members.begin(), members.end(), [&](const Agent* member) {
    return member != nullptr && member->state != NodeState::kSucceeded && reports_it(*member);
  });
  return round.finished() + more >= round.nodes();
}

void Run::take(Agent& agent, const Beat& beat) {
  if (!beat.echo) return out_.send(agent.link, Beat{});
  if (duplicates_.disprove(agent, *beat.echo, out_)) ++counters_.refusals;
  if (agent.silent_since && agent.call == *beat.echo) {  // on the link that it had
    authority_.hear(agent);
    come_back(agent);
  }
  if (is_member(agent)) live_round(state_)->echoed(agent, *beat.echo);
}

// A member that has no workers any more, though none failed and no stop was sent, would leave the
// others waiting for it.
void Run::take(Agent& agent, const Stopped& stopped) {
  if (stopped.round < agent.runs) {
    agent.left = std::max(agent.left, stopped.round);
    return;
  }
  if (stopped.round == agent.stray) {
    agent.stray = Round(0);
    return;
  }
  if (stopped.round != agent.runs) {
    ++counters_.stale;
    return;
  }
  const bool succeeded = agent.state == NodeState::kSucceeded;
  auto* running = in<Running>();
  if (running != nullptr && running->gave_up(agent)) {
    roster_.set_state(agent, NodeState::kStopped);
    return running->given_up.push_back(stopped);
  }
  if (running != nullptr && is_member(agent) && !succeeded) {
    roster_.set_state(agent, NodeState::kStopped);
    if (agent.leave) return;  // it stops its own, and is let go soon
    restarts_.pace(lived(state_, now_));
    return end_round(reasons::ended_early(describe(agent, "")), restarts_.restart_at(now_));
  }
  auto* stopping = in<Stopping>();
  if (stopping != nullptr && stopping->verdict.failure && is_active(agent.state)) {
    stopping->hear(agent, stopped, now_);
  }
  if (succeeded) return;
  if (auto* rebuilding = in<Rebuilding>()) rebuilding->places.ended(agent);
  roster_.set_state(agent, NodeState::kStopped);
}

// A scheduler that signals every node must not make a signal of each node's: all workers get one.
void Run::take(Agent& agent, const PassSignal& passed) {
  const auto* running = in<Running>();
  const bool current = running != nullptr && running->round.has(agent) &&
                       passed.round == running->round.stamp().number;
  if (!current || !may_be_passed_on(passed.signal)) {
    ++counters_.stale;
    return;
  }
  if (!signals_.is_new(passed.signal, agent.hello.agent, now_)) return;
  if (!signal_quota_.try_take(now_)) {
    return out_.note(Level::kWarning, reasons::signal_dropped(passed.signal, agent.host()));
  }
  PassSignal onward = passed;
  onward.host = agent.host();
  for (const Agent* member : running->round.members()) {
    if (member != nullptr && member != &agent) out_.send(member->link, onward);
  }
  out_.note(Level::kInfo, reasons::signal_passed(passed.signal, agent.host()));
}

void Run::take(Agent& agent, const Quiet& quiet) {
  auto* running = in<Running>();
  const bool current = running != nullptr && running->round.has(agent) &&
                       quiet.round == running->round.stamp().number &&
                       agent.state == NodeState::kRunning;
  if (!current || !terms().hang_timeout) {
    ++counters_.stale;
    return;
  }
  running->hang.says(agent.arrival, {quiet.lasts, *terms().hang_timeout, quiet.echo}, now_);
}

/// What it says next comes over another link, or never.
void Run::forget_quiet(const Agent& agent) {
  if (auto* running = in<Running>()) running->hang.forget(agent.arrival);
}

}  // namespace ddprun::round
