// Forming: how long a run without a round waits for agents, how they are informed, and the start of
// a round: which agents, in which order, and the message that each gets.
#include <algorithm>
#include <utility>

#include "base/exit_status.hpp"
#include "rendezvous/protocol/limits.hpp"
#include "rendezvous/round/run.hpp"

namespace ddprun::round {

using namespace protocol;

void Run::end_round(std::string why, Deadline restart_at) {
  const LiveRound* round = live_round(state_);
  restarts_.round_ended(lived(state_, now_), terms());
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
    if (now_ >= abandoned_at) return finish(Done{kExitNodeLost, reasons::kNoNodeLeft});
    Forming empty;
    empty.abandoned_at = abandoned_at;
    empty.survivors_stopped = forming.survivors_stopped;
    enter(std::move(empty));
    return;
  }
  if (!forming.join_deadline) forming.join_deadline = now_ + wanted().wait;
  if (!authority_.may_decide()) {
    const auto newer = authority_.newer_round(roster_.claims());
    if (newer) take_up(*newer);  // its coordinator is lost
  }
  const bool too_few = roster_.size() < wanted().nodes || !authority_.may_decide();
  if (too_few) {
    forming.last_call.reset();
    forming.restart_at.reset();
    forming.store_deadline.reset();
    forming.awaited = nullptr;
  }
  const bool is_early = forming.restart_at && now_ < *forming.restart_at;
  if (too_few || is_early || roster_.away() > 0) {  // a node that reconnects is not left out
    // Without a new round the workers could only wait for peers that are gone.
    if (!std::exchange(forming.survivors_stopped, true)) {
      out_.note(Level::kInfo, why_);  // the agents print it
      for (Agent* agent : roster_.by_silence()) {
        if (is_active(agent->state)) send_stop(*agent, why_);
      }
    }
    if (too_few && is_due(forming.join_deadline)) give_up_forming();
    return;
  }
  // Only before the first round: later, connected agents do not wait for others.
  if (!rounds_.formed() && roster_.size() < terms().nodes_max) {
    if (!forming.last_call) {
      forming.last_call = std::min(now_ + terms().last_call_timeout, *forming.join_deadline);
    }
    if (now_ < *forming.last_call) return;
  }
  start_or_await(forming);
}

void Run::give_up_forming() {
  if (rounds_.has_succeeded_here(roster_)) {
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
  const std::string text = reasons::late(over, roster_.size(), wanted().nodes, wanted().wait);
  finish(Done{kExitSuccess, text});
}

bool Run::may_be_late() const {
  return options_.succeeded && !agreement_.is_other_command() && !rounds_.formed();
}

Run::Wanted Run::wanted() const {
  const Terms& all = terms();
  if (!may_be_late()) return {all.nodes_min, all.join_timeout};
  return {std::clamp(options_.succeeded->nodes, all.nodes_min, all.nodes_max),
          std::min(all.join_timeout, all.last_call_timeout)};
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
  drop(zero, zero.last.number);
  forming.store_deadline.reset();
  settle(forming);
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
  Waiting wait;
  if (awaits) {
    wait = waiting(reasons::silent_nodes_awaited(roster_.silent_hosts(), terms()),
                   running->return_deadline);
  } else if (rebuilding != nullptr) {
    wait = waiting(why_, rebuilding->deadline);
    if (!rebuilding->return_deadline) wait.then = WaitEnd::kOthersAreLost;
  } else {
    const bool is_call = forming->last_call.has_value();
    wait = waiting(authority_.may_decide() ? reasons::waiting(absence(), terms()) + refused_.text
                                           : authority_.missing_text(),
                   is_call ? forming->last_call : forming->join_deadline);
    if (is_call) wait.then = WaitEnd::kRoundStarts;
  }
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

// What is due can still wait for a node that reconnects.
Waiting Run::waiting(std::string text, Deadline until) const {
  Waiting waiting;
  waiting.here = roster_.size();
  waiting.nodes_min = terms().nodes_min;
  waiting.nodes_max = terms().nodes_max;
  waiting.round = rounds_.highest();
  waiting.text = std::move(text);
  if (until) {
    waiting.left = std::chrono::duration_cast<Milliseconds>(std::max(Duration(0), *until - now_));
  }
  return waiting;
}

Run::NextRound Run::next_round() const {
  std::vector<Agent*> agents(roster_.by_silence().begin(), roster_.by_silence().end());
  auto held_back = std::stable_partition(agents.begin(), agents.end(), [this](const Agent* agent) {
    return !join_pace_.holds_back(*agent, now_);
  });
  if (held_back - agents.begin() < wanted().nodes) held_back = agents.end();
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
  if (counters_.rounds == 0 && rounds_.forget_taken_up(members)) {
    restarts_.forget_told(agreement_.restarts_before());
  }
  const std::vector<Placement> placements = assign_ranks(members);
  const int nodes = static_cast<int>(size);
  const bool is_first = !rounds_.formed();
  if (is_first) {
    why_ = nodes == terms().nodes_max ? reasons::all_here(nodes)
                                      : reasons::last_call_over(nodes, terms());
  }
  rounds_.form(roster_);
  if (agreement_.record()) rounds_.raise(agreement_.record()->round);
  if (rounds_.highest().value() >= kRoundMax) return finish({kExitFailure, reasons::kNoRoundLeft});
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
    roster_.place(*members[i], placements[i], rounds_.last(), now_);
    members[i]->succession = succession;
    members[i]->succession.has_vote = authority_.has_vote(*members[i]);
    roster_.recount(*members[i]);
  }
  Running& running = enter(Running{LiveRound(std::move(start), members, now_), now_ + kAnswerMax});
  authority_.begin_round(rounds_.last(), members, running.round.votes_needed());
  for (const Agent* agent : members) out_.send(agent->link, running.round.message_for(*agent));
  members.front()->store_port = 0;
  for (auto spare = spares; spare != order.end(); ++spare) {
    if (is_active((*spare)->state)) strays_.emplace((*spare)->arrival, *spare);
    greet(**spare);
  }
}

}  // namespace ddprun::round
