#include "rendezvous/round/ranks.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "rendezvous/round/hosts.hpp"

namespace ddprun::round {
namespace {

/// Nothing sorts after every number.
[[nodiscard]] int or_last(const std::optional<int>& value) {
  return value.value_or(std::numeric_limits<int>::max());
}

[[nodiscard]] bool comes_before(const Candidate& left, const Candidate& right) {
  if (left.previous != right.previous) return or_last(left.previous) < or_last(right.previous);
  if (left.node_rank != right.node_rank) return or_last(left.node_rank) < or_last(right.node_rank);
  if (left.scheduler_index != right.scheduler_index) {
    return or_last(left.scheduler_index) < or_last(right.scheduler_index);
  }
  if (natural_less(left.host, right.host)) return true;
  if (natural_less(right.host, left.host)) return false;
  return left.arrival < right.arrival;
}

}  // namespace

std::vector<std::size_t> group_order(const std::vector<Candidate>& candidates,
                                     Membership membership, std::size_t count) {
  std::vector<std::size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const bool all_numbered =
      std::all_of(candidates.begin(), candidates.end(),
                  [](const Candidate& one) { return one.node_rank.has_value(); });
  const bool by_number = membership == Membership::kFixed && all_numbered;
  const auto placed = order.begin() + static_cast<std::ptrdiff_t>(std::min(count, order.size()));
  std::partial_sort(order.begin(), placed, order.end(), [&](std::size_t left, std::size_t right) {
    const Candidate& a = candidates[left];
    const Candidate& b = candidates[right];
    if (by_number && a.node_rank != b.node_rank) return *a.node_rank < *b.node_rank;
    return comes_before(a, b);
  });
  return order;
}

std::vector<Placement> assign_ranks(const std::vector<Slot>& slots) {
  std::vector<Placement> placements;
  placements.reserve(slots.size());
  std::unordered_map<std::string, int> role_size;
  int world = 0;
  for (const Slot& slot : slots) {
    Placement placement;
    placement.group_rank = static_cast<int>(placements.size());
    placement.group_size = static_cast<int>(slots.size());
    placement.rank_base = Rank(world);
    placement.role_rank_base = role_size[slot.role];
    placements.push_back(placement);
    world += slot.local_world_size;
    role_size[slot.role] += slot.local_world_size;
  }
  for (std::size_t i = 0; i < slots.size(); ++i) {
    placements[i].world_size = WorldSize(world);
    placements[i].role_world_size = role_size[slots[i].role];
  }
  return placements;
}

}  // namespace ddprun::round
