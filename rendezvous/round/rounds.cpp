#include "rendezvous/round/rounds.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "rendezvous/protocol/limits.hpp"
#include "rendezvous/round/admission.hpp"

namespace ddprun::round {

using namespace protocol;

namespace {

constexpr std::string_view kTermMark = "term-";
constexpr char kLineageMark = '@';

}  // namespace

std::string author_name(std::int64_t term, const std::string& unique) {
  return term > 0 ? std::string(kTermMark) + std::to_string(term) + "-" + unique : unique;
}

std::string author_of_lineage(const std::string& lineage, const std::string& unique) {
  return unique + kLineageMark + lineage;
}

std::string_view lineage_of(const std::string& author) {
  const auto mark = author.find(kLineageMark);
  return mark == std::string::npos ? "" : std::string_view(author).substr(mark + 1);
}

std::int64_t term_of_author(const std::string& author) {
  std::string_view rest = author;
  if (!rest.starts_with(kTermMark)) return 0;
  rest.remove_prefix(kTermMark.size());
  std::int64_t term = 0;
  const char* const end = rest.data() + rest.size();
  const auto [stop, error] = std::from_chars(rest.data(), end, term);
  return error == std::errc() && stop != end && *stop == '-' ? term : 0;
}

Rounds::Rounds(Coordinator coordinator) : coordinator_(std::move(coordinator)) {}

bool Rounds::can_be(Round round) const {
  return !formed_ || round.value() <= highest_ + kRoundJumpMax;
}

std::optional<Refused> Rounds::refusal_of(const Hello& hello) const {
  if (!formed_) return std::nullopt;
  return refuse_round(hello, highest(), kRoundJumpMax - lifted_);
}

void Rounds::lift(Round heard_of) {
  const int lifted = heard_of.value() - highest_;
  if (lifted <= 0 || !formed_) return;
  lifted_ += lifted;
  highest_ = heard_of.value();
}

void Rounds::form(const Roster& roster) {
  if (std::exchange(formed_, true)) return;
  raise(roster.claims().highest_near_half(roster.size(), kRoundJumpMax).value());
}

void Rounds::raise(int round) {
  highest_ = std::max(highest_, round);
}

const RoundStamp& Rounds::next() {
  incomplete_ = others_unknown_ = false;
  last_ = RoundStamp{Round(++highest_), coordinator_.author};
  return last_;
}

void Rounds::continue_from(const RoundStamp& stamp, const Roster& roster) {
  form(roster);
  raise(stamp.number.value());
  last_ = stamp;
  if (stamp.author != coordinator_.author) taken_up_ = stamp.author;
}

void Rounds::begin_new_run() {
  formed_ = false;
  origin_.clear();
  interrupted_.clear();
}

// After a restart of this coordinator: the nodes that did not reconnect may have had the verdict.
bool Rounds::has_succeeded_here(const Roster& roster) const {
  const auto& here = roster.by_silence();
  return others_unknown_ && std::all_of(here.begin(), here.end(), [this](const Agent* agent) {
           return agent->state == NodeState::kSucceeded && agent->last == last_;
         });
}

void Rounds::interrupt(Round round, Interrupted interrupted) {
  interrupted_.insert_or_assign(round.value(), std::move(interrupted));
  if (interrupted_.size() > kInterruptedMax) interrupted_.erase(interrupted_.begin());
}

const Rounds::Interrupted* Rounds::complete(const AgentId& agent, Round round) {
  const auto found = interrupted_.find(round.value());
  if (found == interrupted_.end()) return nullptr;
  found->second.unfinished.erase(agent);
  return found->second.unfinished.empty() ? &found->second : nullptr;
}

const std::string& Rounds::known_origin() const {
  return origin_.empty() ? coordinator_.told_origin : origin_;
}

bool Rounds::is_proven(const RoundStamp& stamp, const std::string& origin) const {
  if (stamp.number == Round(0)) return false;
  if (!origin.empty() && origin == known_origin()) return true;
  const std::string_view lineage = lineage_of(coordinator_.author);
  if (!lineage.empty() && lineage == lineage_of(stamp.author)) return true;
  return stamp.author == coordinator_.author || stamp.author == taken_up_;
}

bool Rounds::shows(const Agent& agent) const {
  return is_proven(agent.last, agent.succession.origin);
}

bool Rounds::is_of_run(const RoundStamp& stamp, const std::string& origin) const {
  const bool can_tell = coordinator_.knows_members || formed_ || !known_origin().empty();
  return !can_tell || is_proven(stamp, origin);
}

bool Rounds::is_of_run(const Agent& agent) const {
  return agent.since > Round(0) || is_of_run(agent.last, agent.succession.origin);
}

bool Rounds::is_of_run(const Agent& agent, const Claim& claim) const {
  return agent.since > Round(0) || is_of_run(claim.stamp, claim.succession.origin);
}

bool Rounds::forget_taken_up(const std::vector<Agent*>& members) {
  const auto shows_it = [this](const Agent* member) { return shows(*member); };
  if (taken_up_.empty() || std::any_of(members.begin(), members.end(), shows_it)) return false;
  taken_up_.clear();
  origin_.clear();
  return true;
}

}  // namespace ddprun::round
