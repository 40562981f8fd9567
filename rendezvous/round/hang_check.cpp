#include "rendezvous/round/hang_check.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/assert.hpp"
#include "base/stack_groups.hpp"

namespace ddprun::round {

void HangCheck::says(NodeId node, const Word& word, TimePoint now) {
  if (gives_up_) return;
  const Duration lasts = succeeded_at_ ? std::min(word.lasts, now - *succeeded_at_) : word.lasts;
  if (lasts < word.limit) return forget(node);
  quiet_.insert(node);
  if (!word.echo || *word.echo != question_) return;
  // All must have been quiet for the whole limit when they were asked; a slow answer can hide a
  // move shortly before. It is asked for again then.
  if (lasts >= word.limit + (now - asked_at_)) {
    still_.insert(node);
  } else {
    asked(0, now);
  }
}

void HangCheck::asked(int question, TimePoint now) {
  question_ = question;
  asked_at_ = now;
  still_.clear();
}

void HangCheck::forget(NodeId node) {
  quiet_.erase(node);
  asked(0, asked_at_);
}

void HangCheck::succeeded(NodeId node, TimePoint now) {
  succeeded_at_ = now;
  if (gives_up_) return forget(node);
  quiet_.clear();
  asked(0, asked_at_);
}

void HangCheck::begin_again() {
  HangCheck next;
  next.succeeded_at_ = succeeded_at_;
  *this = std::move(next);
}

HangCheck::Order HangCheck::next(int nodes) {
  const auto all = static_cast<std::size_t>(std::max(nodes, 1));
  if (gives_up_ || quiet_.size() < all) return Order::kNothing;
  if (question_ == 0) return Order::kLook;
  if (still_.size() < all) return Order::kNothing;
  gives_up_ = true;
  return Order::kGiveUp;
}

std::size_t merge_hangs(std::vector<WorkerExit>& exits) {
  DDPRUN_ASSERT(!exits.empty());
  std::vector<StackGroup> groups;
  std::vector<std::string> evidence{""};
  for (const WorkerExit& exit : exits) {
    const Finding& found = *exit.given_up;
    merge_groups(groups, found.places);
    for (std::size_t at = found.places.empty() ? 0 : 1; at < found.evidence.size(); ++at) {
      const std::string& line = found.evidence[at];
      const bool is_new = std::find(evidence.begin(), evidence.end(), line) == evidence.end();
      if (is_new && evidence.size() < kFindingLinesMax) evidence.push_back(line);
    }
  }
  evidence.front() = groups_text(groups);
  if (groups.empty()) evidence.erase(evidence.begin());
  std::vector<int> odd = odd_ranks(groups);
  if (odd.size() > kFindingRanksMax) odd.resize(kFindingRanksMax);
  const auto has_odd = [&odd](const WorkerExit& exit) {
    const std::vector<StackGroup>& places = exit.given_up->places;
    return std::any_of(places.begin(), places.end(), [&odd](const StackGroup& group) {
      return std::find(group.ranks.begin(), group.ranks.end(), odd.front()) != group.ranks.end();
    });
  };
  const auto at = odd.empty() ? exits.begin() : std::find_if(exits.begin(), exits.end(), has_odd);
  WorkerExit& first = at == exits.end() ? exits.front() : *at;
  first.given_up->evidence = std::move(evidence);
  first.given_up->ranks = std::move(odd);
  first.given_up->places.clear();
  return static_cast<std::size_t>(&first - exits.data());
}

}  // namespace ddprun::round
