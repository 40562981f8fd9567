#include "base/stack_groups.hpp"

#include <numeric>

#include "tests/support/catch.hpp"

using namespace ddprun;

TEST_CASE("the groups of two nodes are one list, in which the odd rank of all is the first") {
  std::vector<StackGroup> groups{{"recv", {0}, 0}, {"next", {1}, 0}};
  CHECK(odd_ranks(groups).empty());
  merge_groups(groups, {{"recv", {2, 3}, 4}});
  CHECK(groups_text(groups) == "1 rank: next: 1; 7 ranks: recv");
  CHECK(odd_ranks(groups) == std::vector<int>{1});
}

TEST_CASE("what is sent of groups is bounded: the smallest, the largest, and their sizes") {
  std::vector<StackGroup> groups;
  for (int i = 0; i < 20; ++i) groups.push_back({"f" + std::to_string(i), {i}, 0});
  std::vector<int> many(kGroupRanksMax + 5);
  std::iota(many.begin(), many.end(), 100);
  groups.push_back({"largest", many, 0});
  groups = shortened(groups);
  REQUIRE(groups.size() == kStackGroupsMax);
  CHECK(groups.front().place == "f0");
  CHECK(groups.back().place == "largest");
  CHECK(groups.back().ranks.size() == kGroupRanksMax);
  CHECK(groups.back().size() == kGroupRanksMax + 5);
}
