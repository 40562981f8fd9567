#include "rendezvous/round/authority.hpp"

#include <algorithm>
#include <utility>

#include "rendezvous/round/reasons.hpp"

namespace ddprun::round {

using namespace protocol;

bool may_lead(const Lead& lead, const KnownRun& known) {
  const std::string own = name_of_origin(known.origin);
  if (!own.empty() && name_of_origin(lead.origin) == own) return true;
  const bool is_fixed = known.terms.nodes_min == known.terms.nodes_max;
  if (is_fixed && known.has_round) return false;
  return lead.fingerprint == command_key(known.terms, known.fingerprint);
}

void Majority::settle(const Base& base) {
  members_.clear();
  for (const Agent* agent : base.voters) {
    members_.emplace(agent->hello.agent.value(), Standing::kHere);
  }
  stamp_ = base.stamp;
  here_ = static_cast<int>(base.voters.size());
  size_ = here_ + base.absent;
  ended_ = base.ended;
  least_ = base.least;
  by_ = base.by;
}

void Majority::lose(const AgentId& agent, Loss loss) {
  const auto found = members_.find(agent.value());
  if (found == members_.end() || found->second != Standing::kHere) return;
  found->second = loss == Loss::kEnded ? Standing::kEnded : Standing::kSilent;
  --here_;
  if (loss == Loss::kEnded) ++ended_;
}

void Majority::answers(const AgentId& agent) {
  const auto found = members_.find(agent.value());
  if (found != members_.end() && found->second == Standing::kSilent) take_back(found->second);
}

void Majority::take_claim(const AgentId& agent, const protocol::RoundStamp& stamp,
                          const std::string& author) {
  if (!is_known() || stamp.number < stamp_.number) return;
  const bool is_settled_one = stamp == stamp_;
  if (!is_settled_one && stamp.author != author) return lose_vote(agent);
  const bool fits = least_ == 0 && static_cast<int>(members_.size()) < size_;
  if (is_settled_one && fits) members_.emplace(agent.value(), Standing::kSilent);
  const auto found = members_.find(agent.value());
  if (found != members_.end()) take_back(found->second);
}

/// Whatever it claims from now on, also a later round of this coordinator that took it in.
void Majority::lose_vote(const AgentId& agent) {
  const auto found = members_.find(agent.value());
  if (found == members_.end()) return;
  if (found->second == Standing::kHere) --here_;
  if (found->second == Standing::kEnded) --ended_;
  found->second = Standing::kVotedElsewhere;
}

void Majority::take_back(Standing& standing) {
  if (standing == Standing::kHere || standing == Standing::kVotedElsewhere) return;
  if (standing == Standing::kEnded) --ended_;
  standing = Standing::kHere;
  ++here_;
}

bool Majority::has_vote(const AgentId& agent) const {
  const auto found = members_.find(agent.value());
  return !is_known() || (found != members_.end() && found->second == Standing::kHere);
}

// Of two that do not hear each other the one with the coordinator continues, and the other one
// stops. A candidate cannot: it does not know what the coordinator does.
int Majority::needed() const {
  if (!is_known()) return 0;
  return decides_tie() ? 1 : needed_to_settle();
}

// The silent one of two may be refused by the host of the other one when that has ended, and
// continue: until it is back, what comes after the round of two is settled by both.
int Majority::needed_to_settle() const {
  if (!is_known()) return 0;
  if (decides_tie() && ended_ > 0) return 1;
  return std::max((size_ - ended_) / 2 + 1, least_);
}

Authority::Authority(SuccessionOptions options, std::string author)
    : options_(std::move(options)), author_(std::move(author)) {}

std::string Authority::missing_text() const {
  return reasons::no_majority(base_.here(), base_.needed());
}

std::string Authority::why_here() const {
  return options_.candidate ? options_.candidate->why : reasons::kCoordinatorRestarted;
}

std::optional<Round> Authority::decides_after() const {
  if (!base_.is_known() || !may_decide()) return std::nullopt;
  return base_.stamp().number;
}

bool Authority::began_apart(const Lead& lead, const Rounds& rounds) const {
  const std::string own = name_of_origin(rounds.origin());
  return decides_after() && !lead.origin.empty() && !own.empty() &&
         name_of_origin(lead.origin) != own;
}

// A run that began at the endpoint, while another one was not heard there, began later than that.
bool Authority::yields_to(const Lead& lead, const Rounds& rounds) const {
  const std::optional<Round> here = decides_after();
  if (!here) return true;
  if (!began_apart(lead, rounds)) return false;
  if (options_.at_endpoint && rounds.began_here()) return true;
  return std::pair(*here, name_of_origin(rounds.origin())) <
         std::pair(lead.round, name_of_origin(lead.origin));
}

// What listens at the run's endpoint, where the author of that round listened, has its port.
bool Authority::has_author_ended(const RoundStamp& stamp, bool was_at_endpoint) const {
  const bool told = options_.candidate && !options_.candidate->ended_author.empty() &&
                    options_.candidate->ended_author == stamp.author;
  return told || (options_.at_endpoint && was_at_endpoint);
}

int Authority::ended_of(const ClaimedRound& claimed) const {
  const bool ended = has_author_ended(claimed.stamp, claimed.is_at_endpoint());
  return ended && claimed.succession.with_author ? 1 : 0;
}

std::optional<ClaimedRound> Authority::majority_round(const Claims& claims) const {
  for (const auto& [key, claimed] : claims.rounds()) {
    if (claimed.has_majority(ended_of(claimed))) return claimed;
  }
  return std::nullopt;
}

// One of its own was given, and perhaps not taken.
std::optional<ClaimedRound> Authority::newer_round(const Claims& claims) const {
  if (!is_shared() || !base_.is_known()) return std::nullopt;
  auto claimed = majority_round(claims);
  const bool is_newer = claimed && claimed->stamp.number > base_.stamp().number;
  if (!is_newer || claimed->stamp.author == author_) return std::nullopt;
  return claimed;
}

void Authority::measure_by(const ClaimedRound& claimed, const Roster& roster) {
  Majority::Base base{claimed.stamp, roster.members_of(claimed.stamp), 0, ended_of(claimed),
                      Majority::By::kCandidate};
  if (!claimed.settled()) {
    // Its coordinator may measure by the round before it still: who had no vote on it has none now.
    std::erase_if(base.voters, [](const Agent* agent) { return !agent->succession.has_vote; });
    base.least = std::max(claimed.succession.needs, 1);
  }
  base.absent = claimed.size - static_cast<int>(base.voters.size());
  base_.settle(base);
}

Succession Authority::succession_of(const std::vector<Agent*>& members,
                                    const std::string& origin) const {
  Succession succession;
  if (!is_shared()) return succession;
  succession.origin = origin;
  succession.needs = base_.needed_to_settle();
  succession.after_unsettled = base_.is_of_unsettled();
  succession.at_endpoint = options_.at_endpoint;
  succession.with_author = std::any_of(members.begin(), members.end(), [](const Agent* member) {
    return member->hello.runs_coordinator;
  });
  return succession;
}

bool Authority::has_vote(const Agent& agent) const {
  return is_shared() && base_.has_vote(agent.hello.agent);
}

void Authority::begin_round(const RoundStamp& stamp, const std::vector<Agent*>& members,
                            int needs) {
  if (!is_shared()) return;
  live_.emplace().needs = needs;
  live_->members.settle({stamp, members});
  settle_if_due();
}

// Its author may be suspended, and continue with one of two.
void Authority::adopt_round(const RoundStamp& stamp, const std::vector<Agent*>& members) {
  const bool was_here = std::all_of(members.begin(), members.end(), [](const Agent* agent) {
    return agent->succession.at_endpoint;
  });
  const auto by =
      has_author_ended(stamp, was_here) ? Majority::By::kAuthor : Majority::By::kCandidate;
  live_.emplace().members.settle({stamp, members, 0, 0, by});
  settle_if_due();
}

bool Authority::vote() {
  if (!awaits_votes()) return false;
  ++live_->votes;
  settle_if_due();
  return live_->settled;
}

/// From then on the next round is measured by the live one.
void Authority::settle_if_due() {
  if (live_->votes < live_->needs) return;
  live_->settled = true;
  base_ = live_->members;
}

void Authority::lose(const Agent& agent, Majority::Loss loss) {
  base_.lose(agent.hello.agent, loss);
  if (live_) live_->members.lose(agent.hello.agent, loss);
}

void Authority::hear(const Agent& agent) {
  base_.answers(agent.hello.agent);
  if (live_) live_->members.answers(agent.hello.agent);
}

void Authority::take_claim(const Agent& agent, const RoundStamp& stamp) {
  base_.take_claim(agent.hello.agent, stamp, author_);
  if (live_) live_->members.take_claim(agent.hello.agent, stamp, author_);
}

}  // namespace ddprun::round
