// The store of an ended round: how long the node that serves it keeps it open.
#include "base/format.hpp"
#include "base/limits.hpp"
#include "tests/client/seat.hpp"

using namespace ddprun;
using namespace ddprun::client;

namespace {

const Duration kStopLimit = Hello().stop_timeout + kStopMargin;

}  // namespace

TEST_CASE(
    "the store of an ended round is open beside the next one until its last client has gone") {
  Seat seat;
  seat.connect();
  seat.hear(seat.round(1, 0));
  seat.feed(StoreOpened{4001});
  seat.hear(seat.round(2, 0));
  CHECK(seat.done<ServeStore>()->round == Round(2));
  CHECK_FALSE(seat.done<CloseStore>().has_value());
  SECTION("") {
    seat.feed(StoreIdle{Round(1)});
  }
  SECTION("or until the limit of a stop") {
    for (Duration passed{}; passed < kStopLimit - seconds(1); passed += seconds(1)) {
      seat.hear(Beat{});
      seat.after(seconds(1));
    }
    CHECK_FALSE(seat.done<CloseStore>().has_value());
    seat.hear(Beat{});
    seat.after(seconds(1));
  }
  REQUIRE(seat.done<CloseStore>().has_value());
  CHECK(seat.done<CloseStore>()->round == Round(1));
}

TEST_CASE("a node that serves the store ends when ranks of other nodes do not use it any more") {
  Seat seat;
  seat.connect();
  seat.hear(seat.round(1, 0));
  seat.feed(StoreOpened{4001});
  seat.feed(LeaveAsked{143, "SIGTERM received"});
  seat.feed(LinkDown{seat.link_, "connection closed"});
  seat.feed(GroupGone{Round(1)});
  CHECK(seat.done<ReleaseStore>()->round == Round(1));
  CHECK_FALSE(seat.membership_.ended());
  SECTION("because they have ended") {
    seat.feed(StoreIdle{Round(1)});
  }
  SECTION("because it was asked again") {
    seat.feed(LeaveAsked{143, "SIGTERM received"});
  }
  SECTION("because of the limit of a stop, and says what it waits for") {
    seat.after(seconds(3));
    REQUIRE(seat.done<Note>().has_value());
    CHECK(seat.done<Note>()->text ==
          "ranks of other nodes still use the store of round 1 on this node; closes it in " +
              duration_text(kStopLimit - seconds(3)));
    seat.after(kStopLimit - seconds(4));
    CHECK_FALSE(seat.membership_.ended());
    seat.after(seconds(1));
  }
  CHECK(seat.done<CloseStore>()->round == Round(1));
  CHECK(seat.done<client::End>()->exit_code == 143);
}

TEST_CASE("a node that had waited before its end says only after 3 s what its store waits for") {
  Seat seat;
  seat.connect();
  seat.hear(seat.round(1, 0));
  seat.feed(StoreOpened{4001});
  seat.succeed();
  seat.hear(Waiting{1, 2, 2, Round(1), milliseconds(0), "waiting for the others"});
  seat.after(seconds(3));
  CHECK(seat.done<Note>()->text == "waiting for the others");
  seat.forget();
  seat.hear(Done{1, "too few nodes"});
  CHECK_FALSE(seat.membership_.ended());
  SECTION("and nothing if it is idle before that") {
    seat.feed(StoreIdle{Round(1)});
    CHECK(seat.membership_.ended());
    CHECK_FALSE(seat.done<Note>().has_value());
  }
  SECTION("if it is still used then") {
    seat.after(kQuietMax - milliseconds(1));
    CHECK_FALSE(seat.done<Note>().has_value());
    seat.after(milliseconds(1));
    REQUIRE(seat.done<Note>().has_value());
    CHECK(seat.done<Note>()->text.ends_with("in " + duration_text(kStopLimit - kQuietMax)));
  }
}

TEST_CASE("a success does not close the store of an earlier round that ranks still use") {
  Seat seat;
  seat.connect();
  seat.hear(seat.round(1, 0));
  seat.feed(StoreOpened{4001});
  seat.hear(seat.round(2, 0));
  seat.feed(StoreOpened{4002});
  seat.feed(GroupGone{Round(1)});
  seat.feed(GroupSucceeded{Round(2)});
  seat.feed(GroupGone{Round(2)});
  seat.hear(Done{});
  CHECK(seat.done<CloseStore>()->round == Round(2));
  CHECK_FALSE(seat.membership_.ended());
  seat.feed(StoreIdle{Round(1)});
  CHECK(seat.done<CloseStore>()->round == Round(1));
  CHECK(seat.done<client::End>()->exit_code == 0);
}

TEST_CASE("after a success its store is not waited for") {
  Seat seat;
  seat.connect();
  seat.hear(seat.round(1, 0));
  seat.feed(StoreOpened{4001});
  seat.succeed();
  seat.hear(Done{});
  CHECK(seat.done<CloseStore>()->round == Round(1));
  CHECK(seat.membership_.ended());
}

TEST_CASE("a single node waits for no store at its end, also not for that of an earlier round") {
  Seat seat(seconds(60), 1);
  seat.connect();
  seat.hear(seat.round_alone(1));
  seat.feed(StoreOpened{4001});
  seat.hear(seat.round_alone(2));
  seat.feed(StoreOpened{4002});
  seat.feed(GroupGone{Round(1)});
  seat.feed(GroupSucceeded{Round(2)});
  seat.feed(GroupGone{Round(2)});
  seat.hear(Done{});
  REQUIRE(seat.membership_.ended());
  CHECK(seat.done<client::End>()->exit_code == 0);
}

TEST_CASE("a stop that was requested is one for the ranks, and for the coordinator") {
  for (const bool requested : {true, false}) {
    Seat seat;
    seat.connect();
    seat.hear(seat.round(1));
    Stop stop{Round(1), 15, milliseconds(1000), "gpu-02 left"};
    stop.requested = requested;
    seat.hear(stop);
    CHECK(seat.done<StopGroup>()->requested == requested);
    seat.feed(LeaveAsked{143, "SIGTERM received", requested});
    CHECK(seat.said<Leave>()->requested == requested);
  }
}

TEST_CASE("a node that leaves keeps what the coordinator says of the run without it") {
  Seat seat;
  seat.connect();
  seat.hear(seat.round(1));
  seat.hear(LetGo{"of a node that stays"});
  LeaveAsked stop{143, "SIGTERM from ddprun stop --all-nodes", true};
  stop.all_nodes = true;
  seat.feed(stop);
  CHECK(seat.said<Leave>()->all_nodes);
  seat.feed(GroupGone{Round(1)});
  seat.hear(LetGo{"the run continues on 3 nodes"});
  seat.feed(LinkDown{seat.link_, "closed"});
  REQUIRE(seat.done<End>());
  CHECK(seat.done<End>()->rest == "the run continues on 3 nodes");
}

TEST_CASE("a verdict about a failure leaves the ranks here the failure grace, a request does not") {
  const auto order = [](bool failure, bool requested) {
    Seat seat;
    seat.connect();
    seat.hear(seat.round(1));
    Stop stop{Round(1), 15, milliseconds(1000), "it ends"};
    stop.verdict.emplace(Done{7, "it ends"});
    if (failure) stop.verdict->failure.emplace();
    stop.requested = requested;
    seat.hear(stop);
    return seat.done<StopGroup>()->after_failure;
  };
  CHECK(order(true, false));
  CHECK_FALSE(order(true, true));
  CHECK_FALSE(order(false, false));
}

TEST_CASE("an order of the next round reaches ranks in their failure grace, the verdict does not") {
  Seat seat;
  seat.connect();
  seat.hear(seat.round(1));
  seat.feed(GroupFailed{Round(1), {}});
  Stop stop{Round(1), 15, milliseconds(1000), "rank 1 failed"};
  stop.verdict.emplace(Done{7, "rank 1 failed", RunFailure{}});
  SECTION("the verdict") {
    seat.hear(stop);
    CHECK_FALSE(seat.done<StopGroup>());
  }
  SECTION("the next round") {
    seat.hear(seat.round(2));
    REQUIRE(seat.done<StopGroup>());
    CHECK(seat.done<StopGroup>()->then == StopGroup::Then::kNextRound);
  }
}
