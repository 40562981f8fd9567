#include "trainer/data/sum_tree.hpp"

#include <algorithm>
#include <string>

#include "tests/support/catch.hpp"

using namespace ddprun::trainer;

namespace {

constexpr std::size_t kMost = 33;
constexpr int kWorlds = 9;

/// A sum that shows its own brackets.
struct Term {
  std::string text;
  Term& operator+=(const Term& other) {
    text = "(" + text + "+" + other.text + ")";
    return *this;
  }
};

std::optional<Term> leaf(const Share& node) {
  if (node.size() > 1) return std::nullopt;
  return Term{std::to_string(node.begin)};
}

struct Partial {
  Share node;
  Term sum;
};

/// Every rank sums what it can alone; then the sums of all ranks are joined, in rank order.
std::string summed_by(std::size_t leaves, int world) {
  std::vector<Partial> partials;
  for (int rank = 0; rank < world; ++rank) {
    for (const auto& node : nodes_within(leaves, share_of(leaves, {rank, world})))
      partials.push_back({node, tree_sum<Term>(node, leaf)});
  }
  const auto joined = [&](const Share& node) -> std::optional<Term> {
    for (const auto& partial : partials) {
      if (partial.node == node) return partial.sum;
    }
    return std::nullopt;
  };
  return tree_sum<Term>({0, leaves}, joined).text;
}

}  // namespace

TEST_CASE("the brackets of a sum depend on the number of micro-batches alone") {
  CHECK(summed_by(1, 1) == "0");
  CHECK(summed_by(4, 1) == "((0+1)+(2+3))");
  CHECK(summed_by(7, 1) == "(((0+1)+(2+3))+((4+5)+6))");
  for (std::size_t leaves = 1; leaves <= kMost; ++leaves) {
    for (int world = 2; world <= kWorlds; ++world)
      CHECK(summed_by(leaves, world) == summed_by(leaves, 1));
  }
}

TEST_CASE("the nodes of all ranks cover every micro-batch once, and few go over the wire") {
  for (std::size_t leaves = 1; leaves <= kMost; ++leaves) {
    for (int world = 1; world <= kWorlds; ++world) {
      std::size_t next = 0;
      for (int rank = 0; rank < world; ++rank) {
        const auto nodes = nodes_within(leaves, share_of(leaves, {rank, world}));
        CHECK(nodes.size() <= 10);  // 2 * log2(33)
        for (const auto& node : nodes) {
          CHECK(node.begin == next);
          next = node.end;
        }
      }
      CHECK(next == leaves);
    }
  }
}

TEST_CASE("a world that divides the micro-batches sends one sum per rank") {
  for (const int world : {1, 2, 4, 8}) {
    for (int rank = 0; rank < world; ++rank)
      CHECK(nodes_within(8, share_of(8, {rank, world})).size() == 1);
  }
  CHECK(nodes_within(2, share_of(2, {2, 3})).empty());  // more ranks than micro-batches
}
