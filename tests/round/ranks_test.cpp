#include "rendezvous/round/ranks.hpp"

#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::round;

namespace {

Candidate named(std::string_view host, std::uint64_t arrival) {
  Candidate candidate;
  candidate.host = host;
  candidate.arrival = arrival;
  return candidate;
}

std::vector<std::string> hosts_in_order(const std::vector<Candidate>& candidates,
                                        Membership membership = Membership::kElastic) {
  std::vector<std::string> hosts;
  for (const std::size_t index : group_order(candidates, membership, candidates.size())) {
    hosts.emplace_back(candidates[index].host);
  }
  return hosts;
}

using Hosts = std::vector<std::string>;

}  // namespace

TEST_CASE("the first round follows the natural order of host names") {
  CHECK(hosts_in_order({named("n10", 1), named("n2", 2), named("n1", 3)}) ==
        Hosts{"n1", "n2", "n10"});
}

TEST_CASE("agents of one host follow their arrival") {
  const auto order = group_order({named("box", 7), named("box", 3)}, Membership::kElastic, 2);
  CHECK(order == std::vector<std::size_t>{1, 0});
}

TEST_CASE("spares beyond the places of a round need no order") {
  const std::vector<Candidate> many{named("d", 1), named("c", 2), named("b", 3), named("a", 4)};
  const auto order = group_order(many, Membership::kElastic, 2);
  REQUIRE(order.size() == 4);
  CHECK(order[0] == 3);
  CHECK(order[1] == 2);
}

TEST_CASE("a node rank goes before a scheduler index, and that before a name") {
  auto ranked = named("z", 1);
  ranked.node_rank = 5;
  auto scheduled = named("y", 2);
  scheduled.scheduler_index = 0;
  CHECK(hosts_in_order({named("a", 3), scheduled, ranked}) == Hosts{"z", "y", "a"});
}

TEST_CASE("survivors keep their order and newcomers come after") {
  auto first = named("z", 1);
  first.previous = 0;
  auto second = named("m", 2);
  second.previous = 4;
  CHECK(hosts_in_order({named("a", 9), second, first}) == Hosts{"z", "m", "a"});
}

TEST_CASE("in a run of fixed size the node rank is the group rank in every round") {
  auto survivor = named("b", 1);
  survivor.previous = 1;
  survivor.node_rank = 1;
  auto replacement = named("c", 2);
  replacement.node_rank = 0;
  CHECK(hosts_in_order({survivor, replacement}, Membership::kFixed) == Hosts{"c", "b"});
  CHECK(hosts_in_order({survivor, replacement}, Membership::kElastic) == Hosts{"b", "c"});
}

TEST_CASE("ranks are contiguous over nodes of different size, role ranks within their role") {
  const auto placements =
      assign_ranks({{4, "trainer"}, {1, "reader"}, {2, "trainer"}, {3, "reader"}});
  REQUIRE(placements.size() == 4);
  CHECK(placements[0] == Placement{0, 4, Rank(0), WorldSize(10), 0, 6});
  CHECK(placements[1] == Placement{1, 4, Rank(4), WorldSize(10), 0, 4});
  CHECK(placements[2] == Placement{2, 4, Rank(5), WorldSize(10), 4, 6});
  CHECK(placements[3] == Placement{3, 4, Rank(7), WorldSize(10), 1, 4});
}
