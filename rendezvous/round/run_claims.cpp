// What agents claim of rounds: it is believed of those that show that they were in them
// (rounds.hpp).
#include <algorithm>
#include <utility>

#include "rendezvous/round/run.hpp"

namespace ddprun::round {

using namespace protocol;

/// All that claimed the run which this one was to continue have gone before a round was formed
/// here: it may have been the word of a stranger.
void Run::forget_taken_up(const std::vector<Agent*>& members) {
  if (counters_.rounds > 0 || !rounds_.was_taken_up()) return;
  const bool has_member = std::any_of(members.begin(), members.end(), [this](const Agent* member) {
    return rounds_.shows(*member);
  });
  if (has_member) return;
  rounds_.forget_taken_up();
  restarts_.forget_told(agreement_.restarts_before());
}

void Run::weigh_claim(Agent& agent, const Claim& claim) {
  if (rounds_.is_of_run(agent, claim)) return take_claim(agent, claim);
  rounds_.lift(claim.stamp.number);
  if (is_active(claim.state)) note_stray(agent, claim.stamp.number);
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
  disown_all();
}

/// All that nothing shows to have been in a round of the run.
void Run::disown_all() {
  const std::vector<Agent*> agents(roster_.by_silence().begin(), roster_.by_silence().end());
  for (Agent* agent : agents) {
    if (agent->last.number > Round(0) && !rounds_.is_of_run(*agent)) disown(*agent);
  }
}

/// It claimed a round of no run that is here: a node that joins, if it is here itself.
void Run::disown(Agent& agent) {
  if (agent.link == kNoLink) return forget(agent);
  if (is_active(agent.state)) note_stray(agent, agent.runs);
  agent.last = {};
  agent.group_rank = -1;
  agent.placement = {};
  agent.succession = {};
  agent.runs = agent.left = Round(0);
  agent.settled = agent.cut_short = agent.failed_heard = false;
  agent.failure.reset();
  roster_.set_state(agent, NodeState::kIdle);
}

/// Its workers are in no round of this run. Nothing waits for them to end.
void Run::note_stray(Agent& agent, Round round) {
  agent.stray = round;
  strays_.emplace(agent.arrival, &agent);
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

}  // namespace ddprun::round
