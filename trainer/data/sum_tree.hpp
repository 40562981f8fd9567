// The fixed binary tree in which --deterministic sums the micro-batches of a step. Its shape
// depends on their number alone, so that the bits of the sum do not depend on which rank computed
// which. A node is a range of leaves; its left child is the largest power of two below its size.
// Pure.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "trainer/data/order.hpp"

namespace ddprun::trainer {

[[nodiscard]] Share left_of(const Share& node);
[[nodiscard]] Share right_of(const Share& node);

/// The sum of `node`, which is not empty: that of `take(node)` if it returns one, otherwise that of
/// its two children. `take` must return a value for a leaf. Holds one value per level at most.
template <class Value, class Take>
Value tree_sum(const Share& node, Take&& take) {
  if (std::optional<Value> value = take(node)) return *std::move(value);
  Value sum = tree_sum<Value>(left_of(node), take);
  sum += tree_sum<Value>(right_of(node), take);
  return sum;
}

/// The largest nodes of the tree of `leaves` that lie within `part`, in order: what one rank can
/// sum alone. Those of all ranks together cover the tree; a rank has fewer than 2 * log2(leaves).
[[nodiscard]] std::vector<Share> nodes_within(std::size_t leaves, const Share& part);

}  // namespace ddprun::trainer
