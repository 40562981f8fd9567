// What agents claim of rounds of other coordinators, and how the run continues from these: after a
// restart of this coordinator all members of a round reconnect; after the loss of another one a
// majority of them is enough (docs/FAILOVER.md). A claim is believed of agents that show that they
// were in the round (rounds.hpp).
#include <algorithm>
#include <utility>

#include "base/exit_status.hpp"
#include "rendezvous/round/run.hpp"

namespace ddprun::round {

using namespace protocol;

void Run::weigh_claim(Agent& agent, const Claim& claim) {
  if (rounds_.is_of_run(agent, claim)) return take_claim(agent, claim);
  rounds_.lift(claim.stamp.number);
  if (!is_active(claim.state)) return;
  agent.stray = claim.stamp.number;  // its workers are in no round of this run: none waits for them
  strays_.emplace(agent.arrival, &agent);
}

void Run::take_claim(Agent& agent, const Claim& claim) {
  rounds_.lift(claim.stamp.number);
  agent.stray = Round(0);
  agent.runs = claim.stamp.number;
  roster_.set_state(agent, claim.state);
  hear_of_left(agent, claim.state, claim.stamp.number);
  auto* rebuilding = in<Rebuilding>();
  // A round it was given and has not heard of still decides its place in the next one.
  if (claim.stamp.number >= agent.last.number && !(claim.stamp == agent.last)) {
    if (rebuilding != nullptr) rebuilding->places.forget(agent);
    agent.last = claim.stamp;
    agent.group_rank = claim.group_rank;
    agent.placement.group_size = claim.group_size;
    agent.succession = claim.succession;
    agent.failure.reset();
  }
  if (claim.stamp == agent.last) {
    agent.settled = claim.settled;
    agent.cut_short = claim.cut_short;
    agent.failed_heard = claim.state == NodeState::kFailed && !claim.failed_unheard;
  }
  roster_.recount(agent);
  authority_.take_claim(agent, claim.stamp);
  if (agent.since > Round(0) || rounds_.is_proven(claim.stamp, claim.succession.origin)) {
    restarts_.believe({claim.restarts, claim.restart_told}, claim.stamp, terms().max_restarts);
  }
  if (rebuilding != nullptr) {
    ClaimedPlaces& places = rebuilding->places;
    if (places.take(agent, claim) && !rebuilding->return_deadline) {
      why_ = reasons::rebuilding(places.stamp().number, places.here(), places.size());
    }
    const bool works = claim.state == NodeState::kStarting || claim.state == NodeState::kRunning ||
                       claim.state == NodeState::kSucceeded;
    if (!works) places.ended(agent);
  }
  if (is_active(claim.state)) strays_.emplace(agent.arrival, &agent);
}

/// The run continues from a round of another coordinator: who was in that run is known from now on.
/// Its origin, if it has one, was set before.
void Run::continue_from(const RoundStamp& stamp, const ClaimedPlaces& places) {
  rounds_.continue_from(stamp, roster_);
  const int most = terms().max_restarts;
  restarts_.believe(places.restarts(stamp), stamp, most);  // also of those that have gone
  for (const Agent* agent : roster_.by_silence()) {
    const bool counts = agent->last.number > Round(0) && rounds_.is_of_run(*agent);
    if (counts) restarts_.believe(places.restarts(agent->last), agent->last, most);
  }
  disown_strangers();
}

/// Agents that nothing shows to have been in a round of the run are nodes that join, if they are
/// here themselves.
void Run::disown_strangers() {
  const std::vector<Agent*> agents(roster_.by_silence().begin(), roster_.by_silence().end());
  for (Agent* agent : agents) {
    if (agent->last.number == Round(0) || rounds_.is_of_run(*agent)) continue;
    if (agent->link == kNoLink) {
      forget(*agent);
      continue;
    }
    if (is_active(agent->state)) {
      agent->stray = agent->runs;
      strays_.emplace(agent->arrival, agent);
    }
    roster_.forget_claim(*agent);
  }
}

// Last in a step: agents that still have workers of another round and got no new one.
void Run::stop_strays() {
  if (in<Rebuilding>() != nullptr) return;  // they may belong to the round that is being rebuilt
  for (const auto& [arrival, agent] : std::exchange(strays_, {})) {
    if (in<Over>() != nullptr || is_member(*agent)) continue;
    if (agent->stray > Round(0)) {
      out_.send(agent->link,
                Stop{agent->stray, 15, agent->hello.stop_timeout, reasons::stray(agent->stray)});
    } else if (is_active(agent->state) && agent->state != NodeState::kStopping) {
      send_stop(*agent, reasons::stray(agent->last.number));
    }
  }
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
    disown_strangers();
    return end_round(reasons::not_rebuilt(claimed.number, missing, waited));
  }
  const bool known = claimed == rounds_.last() && rounds_.is_incomplete();
  if (authority_.is_shared() && authority_.base().number == Round(0)) {
    // Its members can decide what follows it, when enough of them are here.
    const ClaimedRound* members = roster_.claims().find(claimed);
    if (members != nullptr) {
      rounds_.set_origin(members->succession.origin);
      authority_.measure_by(*members, roster_);
    }
  }
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
    running.round.tell_settled(out_);  // which also says where the run is coordinated now
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
  if (in<Running>() == nullptr) return;
  for (Agent* agent : roster_.by_silence()) {  // nodes that came while members were awaited
    if (!is_member(*agent) && agent->link != kNoLink) greet(*agent);
  }
}

/// As far as this coordinator can know: who says so was in a round of this run, or may join it.
bool Run::may_speak(const Lead& lead, bool is_proven) const {
  if (is_proven || !agreement_.is_known()) return true;
  const auto* rebuilding = in<Rebuilding>();
  const ClaimedRound* most =
      rebuilding != nullptr ? roster_.claims().find(rebuilding->places.stamp()) : nullptr;
  const bool is_claimed = rounds_.known_origin().empty() && most != nullptr;
  const std::string& origin = is_claimed ? most->succession.origin : rounds_.known_origin();
  const bool has_round = rounds_.formed() || !rounds_.known_origin().empty() || most != nullptr;
  return may_lead(lead, {terms(), agreement_.agreed().fingerprint, origin, has_round});
}

bool Run::yields_to(const Lead& lead, bool is_proven) const {
  return may_speak(lead, is_proven) && authority_.yields_to(lead, rounds_);
}

bool Run::may_be_rival(const Lead& lead, bool is_proven) const {
  return authority_.began_apart(lead, rounds_) && may_speak(lead, is_proven);
}

/// Whether the wait for members of a round ends here, one way or the other.
bool Run::settle_claims(Rebuilding& rebuilding) {
  if (!authority_.is_shared()) return false;
  const auto claimed = authority_.majority_round(roster_.claims());
  if (claimed) {
    const int ended = authority_.ended_of(*claimed);
    const int remaining = claimed->size - ended;
    const bool all = claimed->here == remaining && claimed->failures_to_come == 0;
    if (!rebuilding.majority_until) {
      rebuilding.majority_until = now_ + terms().silence_max() / kMajorityGraceShare;
    }
    const bool due = now_ >= *rebuilding.majority_until;
    const bool waits = !all && !due && !is_due(rebuilding.deadline);
    if (waits && !rebuilding.return_deadline) return true;
    // Who is known to have ended does not come back.
    const bool may_be_whole = claimed->stamp == rebuilding.places.stamp() && ended == 0;
    if (may_be_whole && awaits_claimed(rebuilding)) {
      if (authority_.is_candidate()) take_up(*claimed);
      return true;
    }
    follow(*claimed, rebuilding.return_deadline.has_value());
    return true;
  }
  rebuilding.majority_until.reset();
  if (!authority_.is_candidate()) return false;
  if (!is_due(rebuilding.deadline)) return true;
  const Duration waited = candidate_wait(terms());
  enter(Rebuilding{now_ + waited});
  out_.add(Abdicate{reasons::no_majority_came(roster_.size(), waited)});
  return true;
}

/// This coordinator decides what follows the round. `was_awaited`: and has told so.
void Run::follow(const ClaimedRound& claimed, bool was_awaited) {
  take_up(claimed);
  if (rounds_.has_succeeded_here(roster_)) {
    const int here = roster_.size();
    return finish(Done{kExitSuccess, reasons::others_unknown(claimed.stamp.number, here)});
  }
  const std::vector<Agent*> here = roster_.members_of(claimed.stamp);
  const auto failed = std::find_if(here.begin(), here.end(), [was_awaited](const Agent* agent) {
    return agent->failure && (was_awaited || counts_failure(*agent));
  });
  if (failed != here.end()) return on_failure(**failed);
  end_round(authority_.why_here() + "; " + reasons::remain(roster_.size(), terms()));
}

void Run::take_up(const ClaimedRound& claimed) {
  rounds_.set_origin(claimed.succession.origin);
  authority_.measure_by(claimed, roster_);
  const auto* rebuilding = in<Rebuilding>();
  continue_from(claimed.stamp, rebuilding != nullptr ? rebuilding->places : ClaimedPlaces());
  rounds_.set_incomplete(true);
  rounds_.set_others_unknown(claimed.cut_short == 0);
}

}  // namespace ddprun::round
