// stack_groups: ranks by the place where they are, of one node or of several, the odd ones first.
// Pure, no thread rule.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ddprun {

/// Ranks that are at the same place.
struct StackGroup {
  std::string place{};       // "all_reduce (ddp.py:1523)", printable
  std::vector<int> ranks{};  // ascending
  int more = 0;              // that are not listed
  [[nodiscard]] std::size_t size() const { return ranks.size() + static_cast<std::size_t>(more); }
  friend bool operator==(const StackGroup&, const StackGroup&) = default;
};
// Groups of one node that are sent, the largest among them, and ranks that each lists.
inline constexpr std::size_t kStackGroupsMax = 8;
inline constexpr std::size_t kGroupRanksMax = 64;

/// The smallest first; of equal ones the one with the lowest rank.
void sort_groups(std::vector<StackGroup>& groups);

/// Adds the ranks of other nodes; sorted, if both are.
void merge_groups(std::vector<StackGroup>& groups, const std::vector<StackGroup>& others);

/// Without the ranks and groups that are too many to be sent.
[[nodiscard]] std::vector<StackGroup> shortened(std::vector<StackGroup> groups);

/// The ranks of the smallest group, if it is smaller than the largest.
[[nodiscard]] std::vector<int> odd_ranks(const std::vector<StackGroup>& groups);

/// "61 ranks: all_reduce (ddp.py:1523)".
[[nodiscard]] std::string group_text(const StackGroup& group);
/// "17, 40, ...".
[[nodiscard]] std::string numbers_text(const StackGroup& group);
/// "2 ranks: next (loader.py:88): 17, 40; 61 ranks: all_reduce (ddp.py:1523)": every group but the
/// largest with its ranks.
[[nodiscard]] std::string groups_text(const std::vector<StackGroup>& groups);

}  // namespace ddprun
