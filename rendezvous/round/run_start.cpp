// The start of a round: which agents, in which order, and the message that each gets.
#include <algorithm>
#include <utility>

#include "base/exit_code.hpp"
#include "rendezvous/protocol/limits.hpp"
#include "rendezvous/round/run.hpp"

namespace ddprun::round {

using namespace protocol;

Run::NextRound Run::next_round() const {
  std::vector<Agent*> agents(roster_.by_silence().begin(), roster_.by_silence().end());
  auto held_back = std::stable_partition(
      agents.begin(), agents.end(), [this](const Agent* agent) { return !is_held_back(*agent); });
  if (held_back - agents.begin() < nodes_needed()) held_back = agents.end();
  std::vector<Candidate> candidates;
  candidates.reserve(agents.size());
  for (auto at = agents.begin(); at != held_back; ++at) {
    const Agent* agent = *at;
    Candidate candidate;
    const bool survivor = rounds_.formed() && agent->last == rounds_.last();
    if (survivor) candidate.previous = agent->group_rank;
    candidate.node_rank = agent->hello.node_rank;
    candidate.scheduler_index = agent->hello.scheduler_index;
    candidate.host = agent->host();
    candidate.arrival = agent->arrival;
    candidates.push_back(candidate);
  }
  const bool fixed = terms().nodes_min == terms().nodes_max;
  const auto order = group_order(candidates, fixed ? Membership::kFixed : Membership::kElastic,
                                 static_cast<std::size_t>(terms().nodes_max));
  NextRound next;
  for (const std::size_t index : order) next.order.push_back(agents[index]);
  next.members = std::min<std::ptrdiff_t>(held_back - agents.begin(), terms().nodes_max);
  next.order.insert(next.order.end(), held_back, agents.end());
  return next;
}

void Run::start_round(const NextRound& next_round) {
  const std::vector<Agent*>& order = next_round.order;
  const auto size = static_cast<std::size_t>(next_round.members);
  const auto spares = order.begin() + next_round.members;
  const std::vector<Agent*> members(order.begin(), spares);
  forget_taken_up(members);
  const std::vector<Placement> placements = assign_ranks(members);
  const int nodes = static_cast<int>(size);
  const bool is_first = !rounds_.formed();
  if (is_first) {
    why_ = nodes == terms().nodes_max ? reasons::all_here(nodes)
                                      : reasons::last_call_over(nodes, terms());
  }
  rounds_.form(roster_);
  if (agreement_.record()) rounds_.raise(agreement_.record()->round);
  if (rounds_.highest().value() >= kRoundMax)
    return finish({kExitFailure, reasons::no_round_left()});
  StartRound start;
  const Round before = rounds_.last().number;
  start.stamp = rounds_.next();
  start.world_size = placements.front().world_size;
  const Round next = start.stamp.number;
  why_ = options_.single_node
             ? reasons::round_of_one(next, restarts_.used(), terms(), restarts_.delay())
             : reasons::round_started(before, next, why_, nodes, start.world_size);
  out_.note(Level::kInfo, why_);
  start.master_port = members.front()->store_port;
  start.restarts = restarts_.used();
  start.reason = why_;
  start.may_be_last = restarts_.may_be_last(terms());
  const bool begins_here = authority_.is_shared() && (is_first || rounds_.origin().empty());
  if (begins_here) rounds_.begin_here();
  start.succession = authority_.succession_of(members, rounds_.origin());
  ++counters_.rounds;
  agreement_.round_started();
  announcer_.cancel();
  const protocol::Succession succession = start.succession;
  for (std::size_t i = 0; i < size; ++i) {
    place(*members[i], placements[i]);
    members[i]->succession = succession;
    members[i]->succession.has_vote = authority_.has_vote(*members[i]);
    roster_.recount(*members[i]);
  }
  Running& running = enter(Running{LiveRound(std::move(start), members, now_), now_ + kAnswerMax});
  authority_.begin_round(rounds_.last(), members, running.round.needs());
  for (const Agent* agent : members) out_.send(agent->link, running.round.message_for(*agent));
  members.front()->store_port = 0;
  for (auto spare = spares; spare != order.end(); ++spare) {
    if (is_active((*spare)->state)) strays_.emplace((*spare)->arrival, *spare);
    greet(**spare);
  }
}

void Run::place(Agent& agent, const Placement& placement) {
  if (agent.since == Round(0)) agent.since = rounds_.last().number;
  const bool has_none = agent.runs == Round(0) || !is_active(agent.state);
  const bool is_stray = std::exchange(agent.stray, Round(0)) > Round(0);
  if (has_none && !is_stray) agent.left = Round(rounds_.last().number.value() - 1);
  agent.last = rounds_.last();
  agent.runs = rounds_.last().number;
  agent.group_rank = placement.group_rank;
  agent.placement = placement;
  agent.answered = false;
  if (agent.came_later && !agent.taken_in) agent.taken_in_at = now_;
  agent.taken_in = agent.came_later;
  agent.question = 0;
  agent.failure.reset();
  agent.running_at = now_;
  roster_.set_state(agent, NodeState::kStarting);
}

}  // namespace ddprun::round
