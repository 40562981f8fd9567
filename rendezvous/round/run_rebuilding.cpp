// After a restart of the coordinator: agents report which round they are in, and it continues if
// all of its members reconnect.
#include <algorithm>
#include <utility>

#include "rendezvous/round/run.hpp"

namespace ddprun::round {

using namespace protocol;

// An agent knows of a round that this coordinator does not: its members have time to reconnect.
void Run::begin_rebuilding(Round heard_of) {
  why_ = reasons::awaiting_return(heard_of);
  const Duration wait =
      authority_.is_candidate() ? candidate_wait(terms()) : Duration(terms().silence_max());
  enter(Rebuilding{now_ + wait});
}

void Run::settle(Rebuilding& rebuilding) {
  // A node that comes back brings what it knew. A stranger leaves nothing behind.
  const bool shows =
      !rounds_.known_origin().empty() || rounds_.is_proven(rebuilding.places.stamp(), "");
  if (roster_.empty() && !rounds_.formed() && !shows) return void(enter(Forming{}));
  if (rebuilding.places.complete()) return adopt(ClaimedPlaces(std::move(rebuilding.places)));
  if (settle_claims(rebuilding)) return;
  if (awaits_claimed(rebuilding)) return;
  if (!is_due(rebuilding.deadline) && !rebuilding.return_deadline) return;
  const Duration waited = terms().silence_max();
  const ClaimedPlaces& places = rebuilding.places;
  const RoundStamp claimed = places.stamp();
  if (places.size() == 0) {
    rounds_.form(roster_);
    return end_round(reasons::none_reconnected(rounds_.highest(), waited));
  }
  const int missing = places.size() - places.here();
  if (places.here() == 0 && !rounds_.is_proven(claimed, "")) {  // of one that has gone
    rounds_.form(roster_);
    disown_all();
    return end_round(reasons::not_rebuilt(claimed.number, missing, waited));
  }
  const bool known = claimed == rounds_.last() && rounds_.is_incomplete();
  remember_claims(claimed);
  continue_from(claimed, places);
  rounds_.set_incomplete(known);
  rounds_.set_others_unknown(!known);
  if (rebuilding.return_deadline) {  // a failure since then is one of the run
    for (const auto& [group_rank, agent] : places.members()) {
      if (agent->failure) return on_failure(*agent);
    }
  }
  end_round(reasons::not_rebuilt(claimed.number, missing, waited));
}

/// Too few nodes are here for a round without those that are missing, and what is here of the round
/// lives: its ranks are kept, as if its nodes had fallen silent before this coordinator. Their
/// success ends no such wait: the missing nodes may still fail.
bool Run::awaits_claimed(Rebuilding& rebuilding) {
  const bool lives = roster_.active() > 0 || rebuilding.return_deadline;
  const ClaimedPlaces& places = rebuilding.places;
  if (places.size() == 0 || places.is_broken() || !lives) return false;
  if (roster_.size() >= terms().nodes_min) return false;
  if (rebuilding.return_deadline) return !is_due(rebuilding.return_deadline);
  if (!is_due(rebuilding.deadline) && !rebuilding.majority_until) return false;
  rebuilding.return_deadline = rebuilding.deadline = now_ + terms().join_timeout;
  why_ = reasons::claimed_awaited(authority_.why_here(), places.stamp().number,
                                  places.size() - places.here(), terms());
  announcer_.request(now_);
  return true;
}

void Run::adopt(const ClaimedPlaces& places) {
  std::vector<Agent*> members;
  for (const auto& [group_rank, agent] : places.members()) members.push_back(agent);
  const std::vector<Placement> placements = assign_ranks(members);
  bool was_stopping = false;
  const Agent* failed = nullptr;
  for (Agent* agent : members) {
    agent->placement = placements[static_cast<std::size_t>(agent->group_rank)];
    agent->running_at = now_;
    agent->answered = true;
    agent->question = 0;
    // Its report, with the evidence, follows the hello and counts as the failure.
    const bool will_report = agent->state == NodeState::kFailed && !agent->failure;
    if (will_report) roster_.set_state(*agent, NodeState::kRunning);
    if (agent->failure && failed == nullptr) failed = agent;
    was_stopping = was_stopping || agent->state == NodeState::kStopping ||
                   agent->state == NodeState::kStopped || agent->state == NodeState::kIdle;
  }
  if (authority_.is_shared()) rounds_.set_origin(members.front()->succession.origin);
  continue_from(places.stamp(), places);
  rounds_.set_incomplete(false);
  StartRound start;
  start.stamp = rounds_.last();
  start.world_size = placements.front().world_size;
  auto& running = enter(Running{LiveRound(std::move(start), members, now_)});
  if (authority_.is_shared()) {
    authority_.adopt_round(rounds_.last(), members);
    tell_settled(running.round);  // which also says where the run is coordinated now
    // A candidate's own node takes heartbeats alone for no answer.
    for (const Agent* member : members) {
      if (member->hello.runs_coordinator) out_.send(member->link, Settled{rounds_.last()});
    }
  }
  why_ = reasons::rebuilt(rounds_.last().number, places.size());
  out_.note(Level::kInfo, why_);
  if (failed != nullptr) return on_failure(*failed);
  if (was_stopping) return end_round(reasons::was_stopping(rounds_.last().number));
  check_success();
  if (in<Running>() != nullptr) greet_newcomers();
}

/// Nodes that came while members were awaited.
void Run::greet_newcomers() {
  for (Agent* agent : roster_.by_silence()) {
    if (!is_member(*agent) && agent->link != kNoLink) greet(*agent);
  }
}

}  // namespace ddprun::round
