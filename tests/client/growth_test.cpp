// What an agent reports of ranks that can take another round as they are.
#include "tests/client/seat.hpp"

using namespace ddprun;
using namespace ddprun::client;

TEST_CASE("ranks that may grow are reported while they run, once for each change") {
  Seat seat = Seat::that_keeps_survivors();
  seat.connect();
  seat.hear(seat.round(1));
  seat.feed(GroupMayGrow{Round(1), true});
  CHECK_FALSE(seat.said<Report>()->may_grow);  // not all run yet, so it cannot be
  seat.feed(GroupRunning{Round(1)});
  seat.forget();
  seat.feed(GroupMayGrow{Round(1), true});
  CHECK(seat.said<Report>()->may_grow);
  CHECK(seat.said<Report>()->state == NodeState::kRunning);
  seat.forget();
  seat.feed(GroupMayGrow{Round(1), true});
  seat.feed(GroupMayGrow{Round(7), false});
  CHECK_FALSE(seat.said<Report>());
  seat.feed(GroupMayGrow{Round(1), false});
  CHECK_FALSE(seat.said<Report>()->may_grow);
}

TEST_CASE("ranks that may grow are reported again over the next link, unless one has failed") {
  Seat seat = Seat::that_keeps_survivors();
  seat.connect();
  seat.hear(seat.round(1));
  seat.feed(GroupRunning{Round(1)});
  seat.feed(GroupMayGrow{Round(1), true});
  seat.forget();
  seat.feed(LinkDown{seat.link_, "connection closed"});
  seat.after(seconds(2));
  seat.feed(LinkUp{seat.link_});
  seat.hear(seat.round(1));
  CHECK(seat.said<Report>()->may_grow);
  seat.feed(GroupFailed{Round(1), {}});
  CHECK_FALSE(seat.said<Report>()->may_grow);
}

TEST_CASE("a rank that is gone as a round grows is reported, also over the next link") {
  Seat seat = Seat::that_keeps_survivors();
  seat.connect();
  seat.hear(seat.round(1));
  seat.feed(GroupRunning{Round(1)});
  StartRound grows = seat.round(2);
  grows.grows = true;
  seat.hear(grows);
  seat.feed(GroupGone{Round(1)});
  CHECK(seat.done<StartGroup>()->round.grows);
  CHECK_FALSE(seat.said<Report>()->rank_gone);
  seat.feed(RankGone{Round(1)});
  CHECK_FALSE(seat.said<Report>()->rank_gone);
  seat.feed(RankGone{Round(2)});
  CHECK(seat.said<Report>()->rank_gone);
  seat.forget();
  seat.feed(LinkDown{seat.link_, "connection closed"});
  seat.after(seconds(2));
  seat.feed(LinkUp{seat.link_});
  seat.hear(grows);
  CHECK(seat.said<Report>()->rank_gone);
  seat.hear(seat.round(3));
  CHECK_FALSE(seat.said<Report>()->rank_gone);
}

TEST_CASE("of a node that joins a round that grows no rank can be gone") {
  Seat seat = Seat::that_keeps_survivors();
  seat.connect();
  StartRound grows = seat.round(2);
  grows.grows = true;
  seat.hear(grows);
  CHECK_FALSE(seat.done<StartGroup>()->round.grows);
  seat.feed(RankGone{Round(2)});
  CHECK_FALSE(seat.said<Report>()->rank_gone);
}

TEST_CASE("a rank that was gone before a round that grows came, or as it waits, is reported") {
  const bool failed = GENERATE(true, false);
  const bool before = GENERATE(true, false);
  Seat seat = Seat::that_keeps_survivors();
  seat.connect();
  seat.hear(seat.round(1));
  seat.feed(GroupRunning{Round(1)});
  const auto goes = [&] {
    failed ? seat.feed(GroupFailed{Round(1), {}}) : seat.feed(RankGone{Round(1)});
  };
  if (before) goes();
  CHECK_FALSE(seat.said<Report>()->rank_gone);
  StartRound grows = seat.round(2);
  grows.grows = true;
  seat.hear(grows);  // something of round 1 is left
  if (!before) goes();
  CHECK(seat.said<Report>()->rank_gone);
  CHECK(seat.said<Report>()->round == Round(2));
  seat.hear(seat.round(3));
  CHECK_FALSE(seat.said<Report>()->rank_gone);
  seat.feed(GroupGone{Round(1)});
  seat.feed(GroupRunning{Round(3)});
  grows = seat.round(4);
  grows.grows = true;
  seat.hear(grows);
  CHECK_FALSE(seat.said<Report>()->rank_gone);
}

TEST_CASE("to a node that missed the round before, one that grows is one that frees its ranks") {
  Seat seat = Seat::that_keeps_survivors();
  seat.connect();
  seat.hear(seat.round(1));
  seat.feed(GroupRunning{Round(1)});
  StartRound grows = seat.round(3);
  grows.grows = true;
  seat.hear(grows);
  seat.feed(GroupGone{Round(1)});
  CHECK_FALSE(seat.done<StartGroup>()->round.grows);  // not from the one that its ranks are of
}

TEST_CASE("ranks that finished before they took a round that grows are said to have done so") {
  Seat seat = Seat::that_keeps_survivors();
  seat.connect();
  StartRound before = seat.round(1);
  before.world_size = WorldSize(4);
  before.rank_base = Rank(3);
  seat.hear(before);
  seat.feed(GroupRunning{Round(1)});
  StartRound grows = seat.round(2);
  grows.grows = true;
  SECTION("before this node heard of it: they are not started again") {
    seat.succeed();
    seat.forget();
    seat.hear(grows);
    CHECK_FALSE(seat.done<StartGroup>());
  }
  SECTION("after that") {
    seat.hear(grows);
    seat.feed(GroupGone{Round(1)});
    CHECK(seat.done<StartGroup>()->round.grows);
    CHECK_FALSE(seat.said<Report>()->finished);
    seat.feed(GroupSucceeded{Round(2), true});
    seat.feed(GroupGone{Round(2)});
  }
  const FinishedRound finished{Round(1), 2, WorldSize(4)};
  CHECK(seat.said<Report>()->round == Round(2));
  CHECK(seat.said<Report>()->state == NodeState::kSucceeded);
  CHECK(seat.said<Report>()->finished == finished);
  seat.forget();
  seat.feed(LinkDown{seat.link_, "connection closed"});
  seat.after(seconds(2));
  seat.feed(LinkUp{seat.link_});
  CHECK(seat.said<Report>()->finished == finished);
  seat.forget();
  seat.hear(seat.round(3));  // others continue
  CHECK_FALSE(seat.said<Report>()->finished);
  CHECK(seat.done<StartGroup>()->round.stamp.number == Round(3));
}

TEST_CASE("ranks that take a round that grows and then finish have finished that one") {
  Seat seat = Seat::that_keeps_survivors();
  seat.connect();
  seat.hear(seat.round(1));
  seat.feed(GroupRunning{Round(1)});
  StartRound grows = seat.round(2);
  grows.grows = true;
  seat.hear(grows);
  seat.feed(GroupGone{Round(1)});
  seat.feed(GroupLeftBefore{Round(1)});
  CHECK_FALSE(seat.said<Report>()->left_before);
  seat.feed(GroupLeftBefore{Round(2)});
  CHECK(seat.said<Report>()->left_before);
  seat.feed(GroupSucceeded{Round(2)});
  CHECK(seat.said<Report>()->left_before);
  CHECK_FALSE(seat.said<Report>()->finished);
}

TEST_CASE(
    "a node that leaves after its ranks have finished is not called stopped as a round grows") {
  Seat seat = Seat::that_keeps_survivors();
  seat.connect();
  seat.hear(seat.round(1));
  seat.succeed();
  seat.feed(LeaveAsked{143, "SIGTERM received", true});
  StartRound grows = seat.round(2);
  grows.grows = true;
  seat.hear(grows);
  CHECK(seat.said<Report>()->finished);
  CHECK(seat.membership_.state() == NodeState::kSucceeded);
}
