// Forming: how long a run without a round waits for agents, how they are informed, and the start of
// a round: which agents, in which order, and the message that each gets.
#include <algorithm>
#include <utility>

#include "base/exit_code.hpp"
#include "rendezvous/protocol/limits.hpp"
#include "rendezvous/round/run.hpp"

namespace ddprun::round {

using namespace protocol;

void Run::end_round(std::string why, Deadline restart_at) {
  const LiveRound* round = live_round();
  restarts_.round_ended(lived(), terms());
  // A node with a rank that failed has no success to report.
  if (in<Running>() != nullptr && !round->first_failure()) {
    rounds_.interrupt(round->stamp().number,
                      {round->world_size(), round->nodes(), round->unfinished()});
  }
  why_ = std::move(why);
  Forming forming;
  forming.restart_at = restart_at;
  forming.survivors_stopped = false;
  // Who did not come back in time is not waited for again.
  if (const auto* running = in<Running>()) forming.join_deadline = running->return_deadline;
  if (const auto* claims = in<Rebuilding>()) forming.join_deadline = claims->return_deadline;
  enter(std::move(forming));
  announcer_.request(now_);
}

void Run::settle(Forming& forming) {
  if (!agreement_.is_known()) return;
  if (roster_.empty()) {
    announcer_.cancel();
    const TimePoint abandoned_at = forming.abandoned_at.value_or(
        now_ + std::min<Duration>(terms().join_timeout, kAbandonedMax));
    if (now_ >= abandoned_at) return finish(Done{kExitNodeLost, reasons::no_node_left()});
    Forming empty;
    empty.abandoned_at = abandoned_at;
    empty.survivors_stopped = forming.survivors_stopped;
    enter(std::move(empty));
    return;
  }
  if (!forming.join_deadline) forming.join_deadline = now_ + join_wait();
  if (!authority_.may_decide()) {
    const auto newer = authority_.newer_round(roster_.claims());
    if (newer) take_up(*newer);  // its coordinator is lost
  }
  if (roster_.size() < nodes_needed() || !authority_.may_decide()) {
    forming.last_call.reset();
    forming.restart_at.reset();
    forming.store_deadline.reset();
    forming.awaited = nullptr;
    stop_survivors(forming);
    if (is_due(forming.join_deadline)) give_up_forming();
    return;
  }
  if (roster_.away() > 0) return stop_survivors(forming);  // a node that reconnects is not left out
  if (forming.restart_at && now_ < *forming.restart_at) return stop_survivors(forming);
  if (!last_call_holds(forming)) start_or_await(forming);
}

void Run::give_up_forming() {
  if (all_here_succeeded()) {
    return finish(
        Done{kExitSuccess, reasons::others_unknown(rounds_.last().number, roster_.size())});
  }
  if (!may_be_late()) {
    const int code = rounds_.formed() ? kExitNodeLost : kExitJoinTimeout;
    Done verdict{code, authority_.may_decide() ? reasons::join_timeout(absence(), terms())
                                               : authority_.missing_text()};
    verdict.node_lost = rounds_.formed();
    return finish(std::move(verdict));
  }
  const Ended& ended = *options_.succeeded;
  const std::string over = reasons::over(options_.run_id, now_ - ended.at, ended.verdict);
  const std::string text = reasons::late(over, roster_.size(), nodes_needed(), join_wait());
  finish(Done{kExitSuccess, text});
}

// After a restart of this coordinator: the nodes that did not reconnect may have had the verdict.
bool Run::all_here_succeeded() const {
  const auto& here = roster_.by_silence();
  return rounds_.others_unknown() &&
         std::all_of(here.begin(), here.end(), [this](const Agent* agent) {
           return agent->state == NodeState::kSucceeded && agent->last == rounds_.last();
         });
}

int Run::nodes_needed() const {
  const int least = terms().nodes_min;
  return may_be_late() ? std::clamp(options_.succeeded->nodes, least, terms().nodes_max) : least;
}

Duration Run::join_wait() const {
  const auto longest = terms().join_timeout;
  return may_be_late() ? std::min(longest, terms().last_call_timeout) : longest;
}

// Only before the first round: later, connected agents do not wait for others.
bool Run::last_call_holds(Forming& forming) const {
  if (rounds_.formed() || roster_.size() >= terms().nodes_max) return false;
  if (!forming.last_call) {
    forming.last_call = std::min(now_ + terms().last_call_timeout, *forming.join_deadline);
  }
  return now_ < *forming.last_call;
}

// The next rank 0 must have a store open. It has, unless this round follows the last one within a
// round trip.
void Run::start_or_await(Forming& forming) {
  if (!forming.store_deadline) forming.store_deadline = now_ + kAnswerMax;
  const bool due = is_due(forming.store_deadline);
  if (forming.awaited != nullptr && forming.awaited->store_port == 0 && !due) return;
  const NextRound next = next_round();
  Agent& zero = *next.order.front();
  if (zero.store_port != 0) return start_round(next);
  forming.awaited = &zero;
  if (!due) return;
  const std::string evidence = reasons::not_answering(zero.last.number, kAnswerMax);
  send_refusal(zero, evidence);
  lose(zero, evidence, LinkEnd::kOpen);
  forming.store_deadline.reset();
  settle(forming);
}

// Too few nodes remain for a new round: the workers could only wait for peers that are gone.
void Run::stop_survivors(Forming& forming) {
  if (std::exchange(forming.survivors_stopped, true)) return;
  out_.note(Level::kInfo, why_);  // the agents print it
  for (Agent* agent : roster_.by_silence()) {
    if (is_active(agent->state)) send_stop(*agent, why_);
  }
}

/// Who waits for a node learns that it was there, and why it does not come.
std::string Run::refused_text() const {
  return refused_ ? "; " + refused_->host + " was refused: " + refused_->why : "";
}

void Run::announce_if_due() {
  const auto* forming = in<Forming>();
  const auto* rebuilding = in<Rebuilding>();
  const auto* running = in<Running>();
  const bool awaits = running != nullptr && running->return_deadline;
  const bool waits =
      rebuilding != nullptr || awaits || (forming != nullptr && !forming->restart_at);
  if (!waits) announcer_.cancel();
  if (!announcer_.take_due(now_)) return;
  if (authority_.is_candidate()) return;  // it may not speak for the run yet
  std::string text =
      forming != nullptr ? reasons::waiting(absence(), terms()) + refused_text() : why_;
  if (awaits) text = awaited_text();
  if (forming != nullptr && !authority_.may_decide()) text = authority_.missing_text();
  Waiting wait = waiting(std::move(text));
  Deadline until;
  if (awaits) {
    until = running->return_deadline;
  } else if (rebuilding != nullptr) {
    until = rebuilding->deadline;
    if (!rebuilding->return_deadline) wait.then = WaitEnd::kOthersAreLost;
  } else if (forming->last_call) {
    until = forming->last_call;
    wait.then = WaitEnd::kRoundStarts;
  } else {
    until = forming->join_deadline;
  }
  if (until) wait.left = left_until(*until);
  for (const Agent* agent : roster_.by_silence()) {
    if (!agent->silent_since) out_.send(agent->link, wait);
  }
  out_.note(Level::kInfo, wait.text);
}

reasons::Absence Run::absence() const {
  reasons::Absence absence;
  absence.needed = terms().nodes_min;
  if (rounds_.formed()) absence.why = why_;
  if (may_be_late()) {
    absence.why = reasons::may_start_again(options_.run_id, now_ - options_.succeeded->at);
  }
  bool all_numbered = true;
  for (const Agent* agent : roster_.by_silence()) {
    absence.hosts.push_back(agent->host());
    all_numbered = all_numbered && agent->hello.node_rank.has_value();
  }
  const int wanted = terms().nodes_max;
  for (int rank = 0; all_numbered && !absence.hosts.empty() && rank < wanted; ++rank) {
    if (roster_.by_node_rank(rank) == nullptr) absence.missing.push_back(rank);
  }
  return absence;
}

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
