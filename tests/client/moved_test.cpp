// The coordinator moves to another process while the run lives.
#include "tests/client/seat.hpp"

using namespace ddprun;
using namespace ddprun::client;

namespace {

const CoordinatorMoved kMoved{"10.0.4.12:4711"};

}  // namespace

TEST_CASE("a coordinator that moves is followed at once, and the workers keep running") {
  Seat seat = Seat::in_round_one();
  const LinkId before = seat.link_;
  seat.feed(kMoved);
  CHECK(seat.said<Reconnecting>());
  CHECK(seat.done<CloseLink>()->link == before);
  CHECK(seat.done<Connect>()->link == seat.link_);
  CHECK(seat.link_ != before);
  CHECK(!seat.done<StopGroup>());
  CHECK(seat.done<client::Note>()->text == "the coordinator is 10.0.4.12:4711");
  seat.feed(LinkUp{seat.link_});
  REQUIRE(seat.said<Hello>());
  CHECK(seat.said<Hello>()->claim->stamp.number == Round(1));
  CHECK(!seat.said<Hello>()->runs_coordinator);
}

TEST_CASE("the node that coordinates says so in its hello, and no longer when another does") {
  Seat seat = Seat::in_round_one();
  seat.feed(CoordinatorMoved{"10.0.4.11:4712", true, true});
  seat.feed(LinkUp{seat.link_});
  CHECK(seat.said<Hello>()->runs_coordinator);
  seat.feed(kMoved);
  seat.feed(LinkUp{seat.link_});
  CHECK(!seat.said<Hello>()->runs_coordinator);
}

TEST_CASE("the first coordinator that is found ends the wait between two attempts") {
  Seat seat;
  seat.feed(StoreOpened{4000});
  seat.feed(LinkDown{seat.link_, "no node is elected"});
  seat.forget();
  seat.feed(kMoved);
  CHECK(seat.done<Connect>());
  CHECK(!seat.done<client::Note>());
}

TEST_CASE("where the coordinator is not known, the link that there is stays") {
  Seat seat = Seat::in_round_one();
  seat.feed(CoordinatorMoved{"", false});
  CHECK(!seat.done<CloseLink>());
  CHECK(!seat.done<Connect>());
}

TEST_CASE("time in which no node can be elected does not count as the coordinator's absence") {
  Seat seat = Seat::in_round_one();
  seat.feed(LinkDown{seat.link_, "connection reset"});
  for (int i = 0; i < 100; ++i) {
    seat.after(seconds(2));
    seat.feed(CoordinatorAwaited{});
    seat.feed(LinkDown{seat.link_, "no node is elected"});
  }
  CHECK(!seat.done<StopGroup>());
  for (int i = 0; i < 40; ++i) {
    seat.after(seconds(2));
    seat.feed(LinkDown{seat.link_, "no node is elected"});
  }
  CHECK(seat.done<StopGroup>());
}

TEST_CASE("a node whose ranks have finished waits for what names the coordinator for a time only") {
  Seat seat = Seat::in_round_one();
  seat.feed(LinkDown{seat.link_, "connection reset"});
  for (int i = 0; i < 100; ++i) {
    seat.after(seconds(2));
    seat.feed(CoordinatorAwaited{"etcd h1:2379"});
    seat.feed(LinkDown{seat.link_, "no node is elected"});
  }
  seat.succeed();
  CHECK(!seat.done<End>());
  for (int i = 0; i < 31; ++i) {
    seat.after(seconds(2));
    seat.feed(CoordinatorAwaited{"etcd h1:2379"});
    seat.feed(LinkDown{seat.link_, "no node is elected"});
  }
  seat.after(seconds(60));  // ranks of other nodes may use its store
  REQUIRE(seat.done<End>());
  CHECK(seat.done<End>()->exit_code == 0);
  CHECK_THAT(seat.done<End>()->text, ContainsSubstring("etcd h1:2379 does not answer"));
}

TEST_CASE("what names the coordinator is awaited for less long than it keeps a verdict") {
  Seat seat = Seat::in_round_one();
  seat.feed(LinkDown{seat.link_, "connection reset"});
  for (Duration waited{}; waited < kAwaitedMax; waited += std::chrono::hours(1)) {
    seat.after(std::chrono::hours(1));
    seat.feed(CoordinatorAwaited{"etcd h1:2379"});
  }
  seat.after(seconds(60));
  CHECK(seat.done<StopGroup>());
}

TEST_CASE("a node with other terms than those of the run is told so, where no node coordinates") {
  Seat seat;
  seat.feed(StoreOpened{4000});
  seat.feed(LinkDown{seat.link_, "no node is elected"});
  seat.feed(ElectionBarred{"run 7f3a has --nnodes 2:2"});
  REQUIRE(seat.done<End>());
  CHECK(seat.done<End>()->exit_code == kExitRefused);
  CHECK(seat.done<End>()->text == "run 7f3a has --nnodes 2:2");
  SECTION("but one that trains waits for the verdict of its run") {
    Seat trains = Seat::in_round_one();
    trains.feed(LinkDown{trains.link_, "connection reset"});
    trains.feed(ElectionBarred{"run 7f3a has --nnodes 2:2"});
    CHECK(!trains.done<End>());
    CHECK(!trains.done<StopGroup>());
  }
}
