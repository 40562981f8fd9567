// Ranks of all nodes that make no progress: --hang-timeout.
#include <algorithm>
#include <utility>

#include "rendezvous/round/run.hpp"

namespace ddprun::round {

using namespace protocol;

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

void Run::settle_hang(Running& running) {
  switch (running.hang.next(running.round.nodes() - running.round.finished())) {
    case HangCheck::Order::kNothing:
      break;
    case HangCheck::Order::kLook:
      running.hang.asked(next_question(), now_);
      return order_hang(running, questions_);
    case HangCheck::Order::kGiveUp:
      running.hang_deadline = now_ + kGiveUpMax;
      return order_hang(running, std::nullopt);
  }
  const bool given_up = running.hang.gives_up() && !running.hang.waits();
  if (given_up || is_due(running.hang_deadline)) end_hang(running);
}

void Run::order_hang(const Running& running, std::optional<int> question) {
  for (const Agent* member : running.round.members()) {
    const bool runs = member != nullptr && member->state == NodeState::kRunning;
    if (runs) out_.send(member->link, Hang{running.round.stamp().number, question});
  }
}

/// As it was ordered to. The others save their stacks, too, before the round ends.
bool Run::gave_up(const Agent& agent) const {
  const auto* running = in<Running>();
  return running != nullptr && running->round.has(agent) && running->hang.gives_up() &&
         agent.failure && agent.failure->given_up;
}

void Run::end_hang(Running& running) {
  std::vector<Agent*> nodes;
  std::vector<WorkerExit> exits;
  for (Agent* member : running.round.members()) {
    const bool gave_up = member != nullptr && member->failure && member->failure->given_up;
    if (!gave_up) continue;
    nodes.push_back(member);
    exits.push_back(*member->failure);
  }
  const std::vector<Stopped> given_up = std::exchange(running.given_up, {});
  running.hang.begin_again();
  running.hang_deadline.reset();
  if (nodes.empty()) return;  // their links broke, or their ranks ended for other reasons
  const std::size_t first = merge_hangs(exits);
  Agent& agent = *nodes[first];
  *agent.failure = exits[first];
  running.round.add({now_, agent.hello.agent, exits[first], running.round.stamp().number});
  on_failure(agent);
  auto* stopping = in<Stopping>();
  if (stopping == nullptr) return;
  for (const Stopped& stopped : given_up) stopping->count(stopped);
}

/// What it says next comes over another link, or never.
void Run::forget_quiet(const Agent& agent) {
  if (auto* running = in<Running>()) running->hang.forget(agent.arrival);
}

}  // namespace ddprun::round
