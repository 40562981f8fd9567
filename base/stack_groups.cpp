#include "base/stack_groups.hpp"

#include <algorithm>
#include <utility>

#include "base/format.hpp"

namespace ddprun {

namespace {
constexpr std::size_t kGroupsShown = 4;
constexpr std::size_t kRanksShown = 8;
}  // namespace

void sort_groups(std::vector<StackGroup>& groups) {
  std::sort(groups.begin(), groups.end(), [](const StackGroup& one, const StackGroup& two) {
    return std::pair(one.size(), one.ranks) < std::pair(two.size(), two.ranks);
  });
}

void merge_groups(std::vector<StackGroup>& groups, const std::vector<StackGroup>& others) {
  for (const StackGroup& other : others) {
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const StackGroup& group) {
      return group.place == other.place;
    });
    if (same == groups.end()) {
      groups.push_back(other);
      continue;
    }
    same->ranks.insert(same->ranks.end(), other.ranks.begin(), other.ranks.end());
    std::sort(same->ranks.begin(), same->ranks.end());
    same->more += other.more;
  }
  sort_groups(groups);
}

std::vector<StackGroup> shortened(std::vector<StackGroup> groups) {
  if (groups.size() > kStackGroupsMax) {
    std::swap(groups[kStackGroupsMax - 1], groups.back());
    groups.resize(kStackGroupsMax);
  }
  for (StackGroup& group : groups) {
    if (group.ranks.size() <= kGroupRanksMax) continue;
    group.more += static_cast<int>(group.ranks.size() - kGroupRanksMax);
    group.ranks.resize(kGroupRanksMax);
  }
  return groups;
}

std::vector<int> odd_ranks(const std::vector<StackGroup>& groups) {
  const bool odd = groups.size() > 1 && groups.front().size() < groups.back().size();
  return odd ? groups.front().ranks : std::vector<int>();
}

std::string group_text(const StackGroup& group) {
  return count_text(static_cast<long long>(group.size()), "rank") + ": " + group.place;
}

std::string numbers_text(const StackGroup& group) {
  std::string text;
  for (std::size_t at = 0; at < group.ranks.size() && at < kRanksShown; ++at) {
    text += (at == 0 ? "" : ", ") + std::to_string(group.ranks[at]);
  }
  return text + (group.size() > kRanksShown ? ", ..." : "");
}

std::string groups_text(const std::vector<StackGroup>& groups) {
  std::string text;
  for (std::size_t at = 0; at < groups.size(); ++at) {
    const bool last = at + 1 == groups.size();
    if (!last && at + 1 >= kGroupsShown) continue;
    if (at > 0) text += at >= kGroupsShown ? "; ... ; " : "; ";
    // Many that wait at one place are one fact; who is elsewhere is the news.
    const bool most = last && (at == 0 || groups[at].size() > groups[at - 1].size());
    text += group_text(groups[at]) + (most ? "" : ": " + numbers_text(groups[at]));
  }
  return text;
}

}  // namespace ddprun
