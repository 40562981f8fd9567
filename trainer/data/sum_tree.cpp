#include "trainer/data/sum_tree.hpp"

#include <algorithm>
#include <bit>

namespace ddprun::trainer {

namespace {

std::size_t middle_of(const Share& node) {
  return node.begin + std::bit_floor(node.size() - 1);
}

void collect(const Share& node, const Share& part, std::vector<Share>& found) {
  if (std::max(node.begin, part.begin) >= std::min(node.end, part.end)) return;
  if (part.begin <= node.begin && node.end <= part.end) {
    found.push_back(node);
    return;
  }
  collect(left_of(node), part, found);
  collect(right_of(node), part, found);
}

}  // namespace

Share left_of(const Share& node) {
  return {node.begin, middle_of(node)};
}

Share right_of(const Share& node) {
  return {middle_of(node), node.end};
}

std::vector<Share> nodes_within(std::size_t leaves, const Share& part) {
  std::vector<Share> found;
  collect({0, leaves}, part, found);
  return found;
}

}  // namespace ddprun::trainer
