// Where an agent looks for its coordinator, and in which order.
#include "rendezvous/client/membership/search.hpp"

#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::client;
using Step = CoordinatorSearch::Step;

namespace {

/// Node `own` of three that may follow.
CoordinatorSearch search_of(int own) {
  CoordinatorSearch search;
  search.learn({{1, "b", "10.0.0.2", 7002}, {2, "c", "10.0.0.3", 7003}, {3, "d", "10.0.0.4", 7004}},
               own);
  return search;
}

}  // namespace

TEST_CASE("without successors the coordinator is looked for where it was") {
  CoordinatorSearch search;
  CHECK(search.lost(LinkLoss::kEnded, true) == Step::kAgain);
  CHECK(search.lost(LinkLoss::kRefused, false) == Step::kAgain);
  CHECK(!search.is_away());
}

TEST_CASE("a link that ends is made again at once, and a refusal leads to the first successor") {
  CoordinatorSearch search = search_of(2);
  CHECK(search.lost(LinkLoss::kEnded, true) == Step::kNow);
  CHECK(!search.is_away());
  CHECK(search.lost(LinkLoss::kRefused, false) == Step::kGo);
  CHECK(search.place() == Place{"b", "10.0.0.2", 7002});
  CHECK(!search.is_candidate());
}

TEST_CASE("the first successor becomes a candidate at once, later ones past those that are gone") {
  CoordinatorSearch first = search_of(1);
  CHECK(first.lost(LinkLoss::kRefused, false) == Step::kLead);
  CHECK(first.is_candidate());
  CoordinatorSearch third = search_of(3);
  CHECK(third.lost(LinkLoss::kSilent, true) == Step::kGo);
  CHECK(third.lost(LinkLoss::kRefused, false) == Step::kGo);
  CHECK(third.lost(LinkLoss::kSilent, false) == Step::kLead);
}

TEST_CASE("who turns this node away has its coordinator, which is looked for again") {
  CoordinatorSearch search = search_of(3);
  (void)search.lost(LinkLoss::kRefused, false);
  CHECK(search.lost(LinkLoss::kEnded, false) == Step::kStart);
  CHECK(!search.is_away());
}

TEST_CASE("of a silent coordinator others may hear a heartbeat longer: they are asked again") {
  CoordinatorSearch search = search_of(3);
  (void)search.lost(LinkLoss::kSilent, true);
  for (int i = 1; i < kTurnsMax; ++i) CHECK(search.lost(LinkLoss::kEnded, false) == Step::kSoon);
  CHECK(search.lost(LinkLoss::kEnded, false) == Step::kStart);
}

TEST_CASE("at the end of the list the way begins again, as it does without a majority") {
  CoordinatorSearch spare = search_of(-1);
  CHECK(spare.lost(LinkLoss::kRefused, false) == Step::kGo);
  CHECK(spare.lost(LinkLoss::kRefused, false) == Step::kGo);
  CHECK(spare.lost(LinkLoss::kRefused, false) == Step::kGo);
  CHECK(spare.lost(LinkLoss::kRefused, false) == Step::kStart);
  CoordinatorSearch last = search_of(3);
  (void)last.lost(LinkLoss::kSilent, true);
  (void)last.lost(LinkLoss::kSilent, false);
  CHECK(last.lost(LinkLoss::kSilent, false) == Step::kLead);
  CHECK(last.abdicated() == Step::kStart);
}

TEST_CASE("without a majority those that follow later are asked") {
  CoordinatorSearch first = search_of(1);
  for (const LinkLoss loss : {LinkLoss::kEnded, LinkLoss::kRefused, LinkLoss::kSilent}) {
    CHECK(first.lost(LinkLoss::kSilent, true) == Step::kLead);
    CHECK(first.abdicated() == Step::kGo);
    CHECK(first.place().host == "c");
    CHECK(!first.is_candidate());
    CHECK(first.lost(loss, false) == Step::kGo);
    CHECK(first.place().host == "d");
    CHECK(first.lost(loss, false) == Step::kStart);
    CHECK(!first.is_away());
  }
}

TEST_CASE("the coordinator that is found is the one that is lost next") {
  CoordinatorSearch search = search_of(2);
  (void)search.lost(LinkLoss::kRefused, false);
  search.found();
  CHECK(!search.is_away());
  search.learn({{2, "c", "10.0.0.3", 7003}}, 2);
  CHECK(search.lost(LinkLoss::kRefused, false) == Step::kLead);
}

TEST_CASE("a node without a round asks one host of the list after each attempt at the endpoint") {
  CoordinatorSearch search;
  const Place b{"b", "b", 29400};
  const Place c{"c", "c", 29400};
  search.also_asks({b, c});
  for (const Place& place : {b, c, b}) {
    CHECK(search.lost(LinkLoss::kRefused, false) == Step::kGo);
    CHECK(search.place() == place);
    CHECK(!search.is_candidate());
    CHECK(search.lost(LinkLoss::kSilent, false) == Step::kStart);
    CHECK(!search.is_away());
  }
  CHECK(search.lost(LinkLoss::kEnded, true) == Step::kNow);
  CHECK(!search.has_successors());
  search.learn({}, 0);
  CHECK(search.has_hosts());
  search.moved();
  CHECK(search.lost(LinkLoss::kSilent, false) == Step::kGo);
  search.found();
  search.learn({{1, "d", "10.0.0.4", 7004}}, 0);
  CHECK(!search.has_hosts());
  CHECK(search.lost(LinkLoss::kRefused, false) == Step::kGo);
  CHECK(search.place() == Place{"d", "10.0.0.4", 7004});
}
