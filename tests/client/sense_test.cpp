// What an agent believes of a coordinator, which may be anything that listens at the endpoint.
#include "rendezvous/client/membership/sense.hpp"

#include <functional>

#include "base/limits.hpp"
#include "tests/client/seat.hpp"

using namespace ddprun;
using namespace ddprun::client;

namespace {

/// Two workers on each of two to four nodes.
Hello own() {
  Hello hello;
  hello.local_world_size = 2;
  hello.terms.nodes_min = 2;
  hello.terms.nodes_max = 4;
  hello.terms.max_restarts = 3;
  return hello;
}

/// The second of three nodes.
StartRound sensible() {
  StartRound start;
  start.stamp = {Round(1), "c1"};
  start.group_rank = 1;
  start.group_size = 3;
  start.rank_base = Rank(2);
  start.world_size = WorldSize(6);
  start.role_rank_base = 2;
  start.role_world_size = 6;
  start.master_address = "10.0.4.11";
  start.master_port = 5000;
  start.restarts = RestartCount(3);
  return start;
}

struct Lie {
  const char* says;
  std::function<void(StartRound&)> tell;
};

}  // namespace

TEST_CASE("a round that makes sense is believed") {
  CHECK(what_cannot_be(sensible(), own()).empty());
  StartRound first = sensible();
  first.group_rank = first.role_rank_base = 0;
  first.rank_base = Rank(0);
  CHECK(what_cannot_be(first, own()).empty());
  StartRound last = sensible();
  last.group_rank = 2;
  last.rank_base = Rank(4);
  last.role_rank_base = 0;  // of another role than the others
  last.role_world_size = 2;
  CHECK(what_cannot_be(last, own()).empty());
  for (const char* address : {"node-1.cluster", "127.0.0.1", "fd00::7", "fe80::1%eth0", "gpu_03"}) {
    StartRound start = sensible();
    start.master_address = address;
    CHECK(what_cannot_be(start, own()).empty());
  }
}

TEST_CASE("where the run has a name its first node's limits hold, not this one's") {
  StartRound start = sensible();
  start.group_size = 5;
  start.world_size = WorldSize(10);
  start.restarts = RestartCount(4);  // in any run
  Hello hello = own();
  CHECK_FALSE(what_cannot_be(start, hello).empty());
  hello.terms.is_named = true;
  CHECK(what_cannot_be(start, hello).empty());
}

TEST_CASE("a round whose numbers contradict each other, or this node, is not believed") {
  const Lie lies[] = {
      {"node 9 of 1 node", [](StartRound& start) { start.group_rank = 9, start.group_size = 1; }},
      {"1 node where --nnodes is 2:4",
       [](StartRound& start) { start.group_rank = 0, start.group_size = 1; }},
      {"5 nodes where --nnodes is 2:4", [](StartRound& start) { start.group_size = 5; }},
      {"ranks 9-10 of 6", [](StartRound& start) { start.rank_base = Rank(9); }},
      {"ranks 5-6 of 6", [](StartRound& start) { start.rank_base = Rank(5); }},
      {"ranks 4-5 of 6 on node 1 of 3", [](StartRound& start) { start.rank_base = Rank(4); }},
      {"ranks 0-1 of 6 on node 1", [](StartRound& start) { start.rank_base = Rank(0); }},
      {"ranks 2-3 of 1", [](StartRound& start) { start.world_size = WorldSize(1); }},
      {"ranks 2-3 of 6 on node 2 of 3", [](StartRound& start) { start.group_rank = 2; }},
      {"ranks 2-3 of 6 on node 0", [](StartRound& start) { start.group_rank = 0; }},
      {"role ranks 5-6 of 6 in a world of 6", [](StartRound& start) { start.role_rank_base = 5; }},
      {"role ranks 2-3 of 9 in a world of 6", [](StartRound& start) { start.role_world_size = 9; }},
      {"MASTER_ADDR \"\"", [](StartRound& start) { start.master_address = ""; }},
      {"MASTER_ADDR \"0.0.0.0\"", [](StartRound& start) { start.master_address = "0.0.0.0"; }},
      {"MASTER_ADDR \"::\"", [](StartRound& start) { start.master_address = "::"; }},
      {"MASTER_ADDR \"224.0.0.1\"", [](StartRound& start) { start.master_address = "224.0.0.1"; }},
      {"MASTER_ADDR \"a b\"", [](StartRound& start) { start.master_address = "a b"; }},
      {"MASTER_ADDR \"$(reboot)\"", [](StartRound& start) { start.master_address = "$(reboot)"; }},
  };
  for (const Lie& lie : lies) {
    StartRound start = sensible();
    lie.tell(start);
    CHECK(what_cannot_be(start, own()) == lie.says);
  }
}

TEST_CASE("an agent that is given a place that cannot be starts nothing and says what it was") {
  Seat seat;
  seat.connect();
  StartRound start = seat.round(1);
  start.group_rank = 9;
  start.group_size = 1;
  seat.hear(start);
  CHECK_FALSE(seat.done<StartGroup>().has_value());
  REQUIRE(seat.done<End>().has_value());
  CHECK(seat.done<End>()->exit_code == kExitRefused);
  CHECK(seat.done<End>()->text ==
        "the coordinator 10.0.4.11:29400 announced what cannot be: node 9 of 1 node; check that "
        "--rdzv-endpoint names the coordinator of this run");
}

TEST_CASE("a success as the first word is not believed: nothing was started") {
  Seat seat;
  seat.connect();
  seat.hear(Beat{});
  seat.hear(Done{0, "all 2 ranks exited with code 0"});
  REQUIRE(seat.done<End>().has_value());
  CHECK(seat.done<End>()->exit_code == kExitRefused);
  CHECK(seat.done<End>()->text.find("it has not greeted this node") != std::string::npos);
}

TEST_CASE("a spare and a late node end with the success of the others") {
  Seat seat;
  seat.connect();
  seat.hear(Waiting{2, 2, 2, Round(1), milliseconds(0), "run 7f3a is over"});
  seat.hear(Done{0, "all 2 ranks exited with code 0"});
  REQUIRE(seat.done<End>().has_value());
  CHECK(seat.done<End>()->exit_code == 0);
}

TEST_CASE("a stop has this node's own grace, whatever the coordinator says") {
  for (const milliseconds grace : {milliseconds(0), milliseconds(kDurationMax)}) {
    Seat seat;
    seat.connect();
    seat.hear(seat.round(1));
    seat.hear(Stop{Round(1), 9, grace, "lost gpu-02"});
    REQUIRE(seat.done<StopGroup>().has_value());
    CHECK(seat.done<StopGroup>()->grace == Hello().stop_timeout);
    CHECK(seat.done<StopGroup>()->signal == 15);
  }
}
