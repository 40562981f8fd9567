// A node whose ranks have all exited with 0: how it ends without word of the run.
#include "tests/client/seat.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;
using namespace ddprun::client;

TEST_CASE(
    "a node that has finished and loses the coordinator for good exits with 0 and what it knows") {
  Seat seat(seconds(2));
  seat.connect();
  seat.hear(seat.round(1));
  seat.succeed();
  seat.feed(LinkDown{seat.link_, "connection reset"});
  seat.after(seconds(1));
  CHECK_FALSE(seat.done<End>().has_value());
  seat.after(seconds(1));
  REQUIRE(seat.done<End>().has_value());
  CHECK(seat.done<End>()->exit_code == 0);
  CHECK(seat.done<End>()->text.starts_with(test::kSucceededHere));
}

TEST_CASE("a node that has finished and is refused by another run's coordinator exits with 0") {
  Seat seat;
  seat.connect();
  seat.hear(seat.round(1));
  seat.succeed();
  seat.hear(Refused{RefusalCode::kWrongRun, "this coordinator serves run b", milliseconds(0)});
  CHECK(seat.done<End>()->exit_code == 0);
}

TEST_CASE("a node that has finished, is told to leave and gets no answer exits with 0") {
  Seat seat;
  seat.connect();
  seat.hear(seat.round(1));
  seat.succeed();
  const auto fall_silent = [&] {
    for (int second = 0; second < 5; ++second) seat.after(seconds(1));
  };
  const LeaveAsked leave{143, "SIGTERM received"};
  int exit_code = 0;
  SECTION("because the coordinator falls silent") {
    seat.feed(leave);
    fall_silent();
    CHECK(seat.done<End>()->text.starts_with(test::kSucceededHere));
    CHECK(
        seat.done<End>()->text.ends_with(": SIGTERM received, and the coordinator "
                                         "10.0.4.11:29400 did not answer"));
  }
  SECTION("because it was lost before") {
    fall_silent();
    seat.feed(leave);
  }
  SECTION("but a refusal") {
    seat.feed(leave);
    seat.hear(Refused{RefusalCode::kWrongRun, "this coordinator serves run b", milliseconds(0)});
  }
  SECTION("unless it is told twice") {
    seat.feed(leave);
    seat.feed(leave);
    seat.after(seconds(1));
    exit_code = 143;
  }
  SECTION("unless the coordinator lets it go") {
    seat.feed(leave);
    seat.feed(LinkDown{seat.link_, "it closed the connection"});
    exit_code = 143;
  }
  SECTION("unless it knows of a failure") {
    Stop stop{Round(1), 15, milliseconds(30'000), "rank 1 (gpu-02) failed: exit code 5"};
    stop.verdict = Done{5, stop.reason, RunFailure{}};
    seat.hear(stop);
    SECTION("and is told to leave") {
      seat.feed(leave);
    }
    SECTION("and waits for the report") {
      for (int second = 0; second < 60; ++second) seat.after(seconds(1));
    }
    fall_silent();
    exit_code = 5;
  }
  REQUIRE(seat.done<End>().has_value());
  CHECK(seat.done<End>()->exit_code == exit_code);
}

TEST_CASE("a node that has finished and is told to leave without a coordinator stops helpers") {
  Seat seat;
  seat.connect();
  seat.hear(seat.round(1));
  seat.feed(GroupSucceeded{Round(1)});
  for (int second = 0; second < 5; ++second) seat.after(seconds(1));
  seat.feed(LeaveAsked{143, "SIGTERM received"});
  CHECK(seat.done<StopGroup>()->round == Round(1));
  seat.feed(GroupGone{Round(1)});
  REQUIRE(seat.done<End>().has_value());
  CHECK(seat.done<End>()->exit_code == 0);
}

TEST_CASE("ranks that exit with 0 instead of taking a round have finished theirs, as is repeated") {
  Seat seat = Seat::that_keeps_survivors();
  seat.connect();
  seat.hear(seat.round(1));
  seat.feed(GroupRunning{Round(1)});
  seat.hear(seat.round(2));
  seat.feed(GroupGone{Round(1)});
  seat.forget();
  seat.feed(FinishedBefore{Round(1), Round(1)});
  CHECK_FALSE(seat.said<Report>());  // of no round that this node has workers of
  seat.feed(FinishedBefore{Round(2), Round(1)});
  CHECK(seat.says_success_of(Round(1)));
  CHECK(seat.said<Report>()->round == Round(2));
  CHECK(seat.said<Report>()->state == NodeState::kStarting);
  seat.forget();
  seat.feed(LinkDown{seat.link_, "connection closed"});
  seat.after(seconds(2));
  seat.feed(LinkUp{seat.link_});
  CHECK(seat.says_success_of(Round(1)));
  seat.forget();
  seat.hear(seat.round(3));
  CHECK_FALSE(seat.says_success_of(Round(1)));
}
