// Coordinators that follow each other without a third party: docs/FAILOVER.md.
#include <algorithm>
#include <utility>

#include "base/exit_code.hpp"
#include "rendezvous/round/run.hpp"

namespace ddprun::round {

using namespace protocol;

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
  if (is_due(rebuilding.deadline)) abdicate();
  return true;
}

/// This coordinator decides what follows the round. `was_awaited`: and has told so.
void Run::follow(const ClaimedRound& claimed, bool was_awaited) {
  take_up(claimed);
  if (all_here_succeeded()) {
    const int here = roster_.size();
    return finish(Done{kExitSuccess, reasons::others_unknown(claimed.stamp.number, here)});
  }
  const std::vector<Agent*> here = members_of(claimed, roster_);
  const auto failed = std::find_if(here.begin(), here.end(), [was_awaited](const Agent* agent) {
    return agent->failure && (was_awaited || counts_failure(*agent));
  });
  if (failed != here.end()) return on_failure(**failed);
  end_round(authority_.why_here() + "; " + reasons::remain(roster_.size(), terms()));
}

void Run::take_up(const ClaimedRound& claimed) {
  measure_by(claimed);
  const auto* rebuilding = in<Rebuilding>();
  continue_from(claimed.stamp, rebuilding != nullptr ? rebuilding->places : ClaimedPlaces());
  rounds_.set_incomplete(true);
  rounds_.set_others_unknown(claimed.cut_short == 0);
}

void Run::abdicate() {
  const Duration waited = candidate_wait(terms());
  enter(Rebuilding{now_ + waited});
  out_.add(Abdicate{reasons::no_majority_came(roster_.size(), waited)});
}

/// A member has taken on the live round.
void Run::count_answer(Agent& agent) {
  auto* running = in<Running>();
  const bool first = !agent.answered;
  live_round()->answered(agent);
  if (!agent.silent_since) authority_.take_claim(agent, live_round()->stamp());
  if (!first || running == nullptr || !agent.succession.has_vote) return;
  if (authority_.vote()) tell_settled(running->round);
}

void Run::tell_settled(const LiveRound& round) {
  for (const Agent* member : round.members()) {
    if (member != nullptr && may_follow(*member)) out_.send(member->link, Settled{round.stamp()});
  }
}

/// Its members can decide what follows it, when enough of them are here.
void Run::remember_claims(const RoundStamp& stamp) {
  if (!authority_.is_shared() || authority_.base().number > Round(0)) return;
  const ClaimedRound* claimed = roster_.claims().find(stamp);
  if (claimed != nullptr) measure_by(*claimed);
}

void Run::measure_by(const ClaimedRound& claimed) {
  rounds_.set_origin(claimed.succession.origin);
  authority_.measure_by(claimed, roster_);
}

// Its kernel has closed the link, without a word that it connects again, while the process could
// not yet have taken the coordinator for lost: it has ended. After that it may be a member of
// another coordinator's round. A stall of this process is no time in which it was heard.
Majority::Loss Run::loss_of(const Agent& agent, bool link_gone) const {
  const Duration surely = terms().silence_max() - terms().keep_alive_interval;
  const bool ended = link_gone && now_ - agent.spoke < surely;
  return ended ? Majority::Loss::kEnded : Majority::Loss::kSilent;
}

}  // namespace ddprun::round
