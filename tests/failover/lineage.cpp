#include "tests/failover/lineage.hpp"

#include <algorithm>

namespace ddprun::failover {

using protocol::RoundStamp;
using protocol::StartRound;

std::string text_of(const RoundStamp& stamp) {
  return std::to_string(stamp.number.value()) + " of " + stamp.author;
}

void Lineage::on_round_sent(const StartRound& start, const AgentId& to, const RoundStamp& base,
                            int failures) {
  const auto [found, is_new] = rounds_.try_emplace(key_of(start.stamp));
  RoundFacts& round = found->second;
  if (is_new) {
    round.stamp = start.stamp;
    round.needs = start.succession.needs;
    round.size = start.group_size;
    if (round.needs > 0) round.base = base;
    if (round.needs == 0) settle(round);
  }
  require(round.size == start.group_size && round.needs == start.succession.needs,
          "round " + text_of(start.stamp) + " is told in two ways");
  const auto [place, is_first] = round.members.emplace(start.group_rank, to);
  require(is_first || place->second == to,
          "round " + text_of(start.stamp) + " has two members with one group rank");
  round.has_successors = round.has_successors || !start.successors.empty();
  if (start.succession.has_vote && round.voters.insert(to.value()).second) {
    round.votes += round.takers.contains(to.value()) ? 1 : 0;
  }
  restarts_ = std::max(restarts_, start.restarts.value());
  require(restarts_ <= failures,
          "a restart was counted without a worker that failed: " + std::to_string(restarts_) +
              " restarts, " + std::to_string(failures) + " failures");
}

void Lineage::on_round_taken(const AgentId& agent, const RoundStamp& before,
                             const StartRound& start) {
  require(start.stamp.number > before.number, agent.value() + " goes back from round " +
                                                  text_of(before) + " to " + text_of(start.stamp));
  const auto found = rounds_.find(key_of(start.stamp));
  require(found != rounds_.end(), "a round that was not sent");
  RoundFacts& round = found->second;
  if (before.number > Round(0)) {
    round.ancestors.insert(key_of(before));
    const auto older = rounds_.find(key_of(before));
    if (older != rounds_.end()) {
      round.ancestors.insert(older->second.ancestors.begin(), older->second.ancestors.end());
    }
  }
  if (round.takers.insert(agent.value()).second && round.voters.contains(agent.value())) {
    ++round.votes;
  }
  if (round.votes >= round.needs) settle(round);
}

// Of one coordinator two may be: it did not hear that the first of them was taken on. Where two
// nodes were left and one went on alone, the other one may follow when the process of that is gone.
void Lineage::settle(RoundFacts& round) {
  if (std::exchange(round.is_settled, true) || round.base.number == Round(0)) return;
  for (const auto& [key, other] : rounds_) {
    const bool rivals = other.is_settled && other.base == round.base &&
                        other.stamp.author != round.stamp.author && lives(other) &&
                        can_be_followed(other) && can_be_followed(round);
    require(!rivals, "rounds " + text_of(other.stamp) + " and " + text_of(round.stamp) +
                         " both follow round " + text_of(round.base));
  }
}

bool Lineage::lives(const RoundFacts& round) const {
  return std::any_of(round.takers.begin(), round.takers.end(),
                     [this](const std::string& taker) { return !gone_.contains(taker); });
}

// "c3#7.1.1" is in the process of agent "n3#7".
bool Lineage::can_be_followed(const RoundFacts& round) const {
  const std::string& author = round.stamp.author;
  const bool ended = gone_.contains("n" + author.substr(1, author.find('.') - 1));
  return round.has_successors || !ended;
}

// New processes on hosts that reach no other know of no run, and begin one.
protocol::RoundStamp Lineage::origin(const RoundFacts& round) const {
  const RoundFacts* at = &round;
  while (at->base.number > Round(0)) {
    const RoundFacts* base = find(at->base);
    if (base == nullptr) return at->base;
    at = base;
  }
  return at->stamp;
}

const Lineage::RoundFacts* Lineage::find(const RoundStamp& stamp) const {
  const auto found = rounds_.find(key_of(stamp));
  return found == rounds_.end() ? nullptr : &found->second;
}

const Lineage::RoundFacts* Lineage::newest_settled() const {
  for (auto at = rounds_.rbegin(); at != rounds_.rend(); ++at) {
    if (at->second.is_settled && !at->second.takers.empty()) return &at->second;
  }
  return nullptr;
}

bool Lineage::descends(const RoundStamp& stamp, const RoundStamp& from) const {
  if (stamp == from) return true;
  const RoundFacts* round = find(stamp);
  return round != nullptr && round->ancestors.contains(key_of(from));
}

// The relation of two rounds never ends: what is checked here, as the second one begins, holds.
void Lineage::on_agent(const Agent& agent) {
  const auto change = [this](const Key& key, int by) {
    const auto found = rounds_.find(key);
    if (found == rounds_.end()) return;
    RoundFacts& round = found->second;
    round.working += by;
    const bool is_whole =
        round.working == round.size && static_cast<int>(round.members.size()) == round.size;
    if (!is_whole) {
      worlds_.erase(key);
    } else if (worlds_.insert(key).second) {
      check_world(round);
    }
  };
  const Key now = key_of(agent.stamp);
  const auto before = works_.find(agent.id);
  if (before != works_.end()) {
    if (agent.works && before->second == now) return;
    const Key left = before->second;
    works_.erase(before);
    change(left, -1);
  }
  if (!agent.works) return;
  works_.emplace(agent.id, now);
  change(now, 1);
}

void Lineage::check_world(const RoundFacts& round) const {
  for (const Key& key : worlds_) {
    const RoundFacts& other = rounds_.at(key);
    const bool related = descends(round.stamp, other.stamp) || descends(other.stamp, round.stamp);
    require(related || !(origin(round) == origin(other)),
            "two worlds: round " + text_of(other.stamp) + " and round " + text_of(round.stamp) +
                " run at one time");
  }
}

}  // namespace ddprun::failover
