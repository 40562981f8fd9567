// Coordinators that follow each other without a third party: docs/FAILOVER.md.
#include <algorithm>
#include <utility>

#include "base/exit_code.hpp"
#include "rendezvous/round/run.hpp"

namespace ddprun::round {

using namespace protocol;

// What listens at the run's endpoint, where the author of that round listened, has its port.
bool Run::has_author_ended(const RoundStamp& stamp, bool was_at_endpoint) const {
  const SuccessionOptions& options = options_.succession;
  const bool told = options.candidate && !options.candidate->ended_author.empty() &&
                    options.candidate->ended_author == stamp.author;
  return told || (options.at_endpoint && was_at_endpoint);
}

bool Run::began_apart(const std::string& origin) const {
  const std::string own = name_of_origin(rounds_.origin());
  return decides_after() && !origin.empty() && !own.empty() && name_of_origin(origin) != own;
}

/// As far as this coordinator can know: who says so was in a round of this run, or may join it.
bool Run::may_speak(const Lead& lead, bool is_proven) const {
  if (is_proven || !run_terms_) return true;
  const auto* rebuilding = in<Rebuilding>();
  const ClaimedRound* most =
      rebuilding != nullptr ? roster_.claims().find(rebuilding->places.stamp()) : nullptr;
  const bool is_claimed = rounds_.known_origin().empty() && most != nullptr;
  const std::string& origin = is_claimed ? most->succession.origin : rounds_.known_origin();
  const bool has_round = rounds_.formed() || !rounds_.known_origin().empty() || most != nullptr;
  return may_lead(lead, {terms(), run_terms_->fingerprint, origin, has_round});
}

// A run that began at the endpoint, while another one was not heard there, began later than that.
bool Run::yields_to(const Lead& lead, bool is_proven) const {
  if (!may_speak(lead, is_proven)) return false;
  const std::optional<Round> here = decides_after();
  if (!here) return true;
  if (!began_apart(lead.origin)) return false;
  const std::string& own = rounds_.origin();
  const bool is_later = options_.succession.at_endpoint && rounds_.began_here();
  return is_later ||
         std::pair(*here, name_of_origin(own)) < std::pair(lead.round, name_of_origin(lead.origin));
}

/// Members of a round that are known to have ended.
int Run::ended_of(const ClaimedRound& claimed) const {
  const bool ended = has_author_ended(claimed.stamp, claimed.is_at_endpoint());
  return ended && claimed.succession.with_author ? 1 : 0;
}

/// The newest round of which a majority is here.
std::optional<ClaimedRound> Run::majority_round() const {
  for (const auto& [key, claimed] : roster_.claims().rounds()) {
    if (is_majority(claimed, ended_of(claimed))) return claimed;
  }
  return std::nullopt;
}

/// Whether the wait for members of a round ends here, one way or the other.
bool Run::settle_claims(Rebuilding& rebuilding) {
  if (!options_.succession.exists) return false;
  const auto claimed = majority_round();
  if (claimed) {
    const int remaining = claimed->size - ended_of(*claimed);
    const bool all = claimed->here == remaining && claimed->failures_to_come == 0;
    if (!rebuilding.majority_until) {
      rebuilding.majority_until = now_ + terms().silence_max() / kMajorityGraceShare;
    }
    const bool due = now_ >= *rebuilding.majority_until;
    const bool waits = !all && !due && !is_due(rebuilding.deadline);
    if (waits && !rebuilding.return_deadline) return true;
    // Who is known to have ended does not come back.
    const bool may_be_whole =
        claimed->stamp == rebuilding.places.stamp() && ended_of(*claimed) == 0;
    if (may_be_whole && awaits_claimed(rebuilding)) {
      if (is_candidate()) take_up(*claimed);
      return true;
    }
    follow(*claimed, rebuilding.return_deadline.has_value());
    return true;
  }
  rebuilding.majority_until.reset();
  if (!is_candidate()) return false;
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
  const auto& candidate = options_.succession.candidate;
  const std::string why = candidate ? candidate->why : reasons::coordinator_restarted();
  end_round(why + "; " + reasons::remain(roster_.size(), terms()));
}

/// The members of a later round of another coordinator, which is lost, have come here.
void Run::follow_newer() {
  if (!options_.succession.exists || !majority_.is_known()) return;
  const auto claimed = majority_round();
  if (!claimed || claimed->stamp.number <= majority_.stamp().number) return;
  if (claimed->stamp.author == options_.author) return;  // it was given, and perhaps not taken
  take_up(*claimed);
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
  actions_.emplace_back(Abdicate{reasons::no_majority_came(roster_.size(), waited)});
}

/// A member has taken on the live round.
void Run::count_answer(Agent& agent) {
  auto* running = in<Running>();
  const bool first = !agent.answered;
  live_round()->answered(agent);
  if (!agent.silent_since) count_claim(agent, live_round()->stamp());
  if (!first || running == nullptr || running->settled || !agent.succession.has_vote) return;
  ++running->votes;
  settle_round();
}

/// From now on the next round is measured by this one.
void Run::settle_round() {
  auto& running = *in<Running>();
  if (!options_.succession.exists || running.votes < running.round.needs()) return;
  running.settled = true;
  majority_ = running.majority;
  if (running.round.needs() > 0) tell_settled(running.round);  // else its message says so
}

void Run::tell_settled(const LiveRound& round) {
  for (const Agent* member : round.members()) {
    if (member != nullptr && may_follow(*member)) send(member->link, Settled{round.stamp()});
  }
}

/// Its members can decide what follows it, when enough of them are here.
void Run::remember_claims(const RoundStamp& stamp) {
  if (!options_.succession.exists || majority_.is_known()) return;
  const ClaimedRound* claimed = roster_.claims().find(stamp);
  if (claimed != nullptr) measure_by(*claimed);
}

void Run::measure_by(const ClaimedRound& claimed) {
  rounds_.set_origin(claimed.succession.origin);
  Majority::Base base{claimed.stamp, members_of(claimed, roster_), 0, ended_of(claimed),
                      Majority::By::kCandidate};
  if (!claimed.settled()) {
    // Its coordinator may measure by the round before it still: who had no vote on it has none now.
    std::erase_if(base.voters, [](const Agent* agent) { return !agent->succession.has_vote; });
    base.least = std::max(claimed.succession.needs, 1);
  }
  base.absent = claimed.size - static_cast<int>(base.voters.size());
  majority_.settle(base);
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
