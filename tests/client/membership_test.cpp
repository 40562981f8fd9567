// The agent's side of the link, rule by rule: what it does with each message, and what it repeats.
#include "tests/client/seat.hpp"

using namespace ddprun;
using namespace ddprun::client;

TEST_CASE("the store listener is open before the hello, and the hello names its port") {
  Seat seat;
  CHECK(seat.done<OpenStore>().has_value());
  CHECK_FALSE(seat.done<Connect>().has_value());
  seat.connect();
  REQUIRE(seat.said<Hello>().has_value());
  CHECK(seat.said<Hello>()->store_port == 4000);
}

TEST_CASE("a round is answered at once and starts when the old workers are gone") {
  Seat seat;
  seat.connect();
  seat.hear(seat.round(1));
  CHECK(seat.done<StartGroup>()->round.stamp.number == Round(1));
  seat.forget();
  seat.hear(seat.round(2));
  CHECK(seat.said<Report>()->state == NodeState::kStarting);
  CHECK(seat.done<StopGroup>()->round == Round(1));
  CHECK_FALSE(seat.done<StartGroup>().has_value());
  seat.feed(GroupGone{Round(1)});
  CHECK(seat.done<StartGroup>()->round.stamp.number == Round(2));
}

TEST_CASE("a round that was overtaken while the old workers ended is never started") {
  Seat seat;
  seat.connect();
  seat.hear(seat.round(1));
  seat.hear(seat.round(2));
  seat.hear(seat.round(3));
  seat.forget();
  seat.feed(GroupGone{Round(1)});
  CHECK(seat.done<StartGroup>()->round.stamp.number == Round(3));
}

TEST_CASE("a round that is not newer is dropped and counted, the same one is answered again") {
  Seat seat;
  seat.connect();
  seat.hear(seat.round(5));
  seat.forget();
  seat.hear(seat.round(4));
  StartRound other = seat.round(5);
  other.stamp.author = "c2";
  seat.hear(other);
  CHECK(seat.membership_.stale() == 2);
  CHECK_FALSE(seat.said<Report>().has_value());
  seat.hear(seat.round(5));
  CHECK(seat.said<Report>().has_value());
  CHECK_FALSE(seat.done<StartGroup>().has_value());
}

TEST_CASE("group rank 0 serves the round's store and answers with the port of the next one") {
  Seat seat;
  seat.connect();
  StartRound first = seat.round(1, 0);
  first.store_peers = {"10.0.0.7"};
  seat.hear(first);
  CHECK(seat.done<ServeStore>()->round == Round(1));
  CHECK(seat.done<ServeStore>()->peers == first.store_peers);
  CHECK_FALSE(seat.said<Report>().has_value());
  seat.feed(StoreOpened{4001});
  CHECK(seat.said<Report>()->store_port == 4001);
  seat.hear(seat.round(2, 1));
  CHECK(seat.done<ReleaseStore>()->round == Round(1));
}

TEST_CASE("a lost link stops no worker; the next hello claims the round and repeats the report") {
  Seat seat;
  seat.connect();
  seat.hear(seat.round(3));
  seat.feed(GroupRunning{Round(3)});
  seat.feed(LinkDown{seat.link_, "connection reset"});
  CHECK_FALSE(seat.done<StopGroup>().has_value());
  seat.feed(GroupFailed{Round(3), WorkerExit{}});
  seat.forget();
  seat.after(seconds(1));
  seat.feed(LinkUp{seat.link_});
  REQUIRE(seat.said<Hello>()->claim.has_value());
  CHECK(seat.said<Hello>()->claim->stamp.number == Round(3));
  CHECK(seat.said<Hello>()->claim->state == NodeState::kFailed);
  CHECK(seat.said<Report>()->failure.has_value());
}

TEST_CASE("a failure from before a stop is reported, also when it is learned after the stop") {
  Seat seat;
  seat.connect();
  seat.hear(seat.round(3));
  seat.feed(GroupRunning{Round(3)});
  seat.hear(Stop{Round(3), 15, Milliseconds(1000), "rank 4 failed"});
  seat.forget();
  seat.feed(GroupFailed{Round(3), WorkerExit{}});
  REQUIRE(seat.said<Report>().has_value());
  CHECK(seat.said<Report>()->state == NodeState::kFailed);
  CHECK(seat.said<Report>()->failure.has_value());
}

TEST_CASE("a success is reported at once, and the node ends when what its workers left is gone") {
  Seat seat;
  seat.connect();
  seat.hear(seat.round(1));
  seat.feed(GroupSucceeded{Round(1)});
  CHECK(seat.said<Report>()->state == NodeState::kSucceeded);
  SECTION("a success of the run leaves it its time") {
    seat.hear(Done{});
    CHECK_FALSE(seat.done<StopGroup>().has_value());
    CHECK_FALSE(seat.membership_.ended());
    seat.feed(LeaveAsked{143, "agent got SIGTERM"});  // the shell hurries it
    seat.feed(GroupGone{Round(1)});
    CHECK(seat.done<End>()->exit_code == 0);
  }
  SECTION("a failure of another node stops it") {
    seat.hear(Done{7, "rank 1 (gpu-02) failed: exit code 7", RunFailure{}});
    CHECK(seat.done<StopGroup>()->round == Round(1));
    seat.feed(GroupGone{Round(1)});
    CHECK(seat.done<End>()->exit_code == 7);
  }
  SECTION("a stop is answered when it is gone") {
    seat.hear(Stop{Round(1), 15, milliseconds(1000), "lost gpu-02"});
    CHECK(seat.done<StopGroup>()->round == Round(1));
    CHECK_FALSE(seat.said<Stopped>().has_value());
    seat.feed(GroupGone{Round(1), milliseconds(3), 0, 0});
    CHECK(seat.said<Stopped>()->took == milliseconds(3));
    CHECK(seat.membership_.state() == NodeState::kSucceeded);
  }
  SECTION("the next round waits for it") {
    seat.forget();
    seat.hear(seat.round(2));
    CHECK(seat.done<StopGroup>()->round == Round(1));
    CHECK_FALSE(seat.done<StartGroup>().has_value());
    seat.feed(GroupGone{Round(1)});
    CHECK(seat.done<StartGroup>()->round.stamp.number == Round(2));
  }
}

TEST_CASE("a group that ends is told what follows where workers may be held") {
  Seat seat = Seat::that_keeps_survivors();
  seat.connect();
  seat.hear(seat.round(1));
  seat.feed(GroupRunning{Round(1)});
  SECTION("a failure here, then the next round, then a stop of that") {
    seat.feed(GroupFailed{Round(1), {}});
    CHECK_FALSE(seat.done<StopGroup>().has_value());
    seat.hear(seat.round(2));
    CHECK(seat.done<StopGroup>()->round == Round(1));
    CHECK(seat.done<StopGroup>()->then == StopGroup::Then::kNextRound);
    seat.hear(Stop{Round(2), 15, milliseconds(1000), "lost gpu-02"});
    CHECK(seat.done<StopGroup>()->round == Round(1));
    CHECK(seat.done<StopGroup>()->then == StopGroup::Then::kEnd);
    seat.forget();
    seat.feed(GroupGone{Round(1)});
    CHECK_FALSE(seat.done<StartGroup>().has_value());
  }
  SECTION("a failure here, and no restart is left") {
    seat.feed(GroupFailed{Round(1), {}});
    seat.hear(Stop{Round(1), 15, milliseconds(1000), "no restart is left"});
    CHECK(seat.done<StopGroup>()->then == StopGroup::Then::kEnd);
  }
  SECTION("a failure here, and the next round has to wait") {
    seat.feed(GroupFailed{Round(1), {}});
    Stop stop{Round(1), 15, milliseconds(1000), "restart 2 of 3 after 0.1 s"};
    stop.waits = true;
    seat.hear(stop);
    CHECK(seat.done<StopGroup>()->then == StopGroup::Then::kWait);
    seat.hear(seat.round(2));
    CHECK(seat.done<StopGroup>()->then == StopGroup::Then::kNextRound);
  }
  SECTION("a failure here, and a signal to leave") {
    seat.feed(GroupFailed{Round(1), {}});
    seat.feed(LeaveAsked{143, "agent got SIGTERM"});
    CHECK(seat.done<StopGroup>()->then == StopGroup::Then::kEnd);
  }
  SECTION("a failure elsewhere") {
    seat.hear(seat.round(2));
    CHECK(seat.done<StopGroup>()->then == StopGroup::Then::kNextRound);
    seat.feed(GroupGone{Round(1)});
    CHECK(seat.done<StartGroup>()->round.stamp.number == Round(2));
  }
}

TEST_CASE("a group that ends by itself is told of the next round, for which it spares no worker") {
  Seat seat;
  seat.connect();
  seat.hear(seat.round(1));
  seat.feed(GroupFailed{Round(1), {}});
  seat.hear(seat.round(2));
  REQUIRE(seat.done<StopGroup>());
  CHECK(seat.done<StopGroup>()->then == StopGroup::Then::kNextRound);
  CHECK_FALSE(seat.done<StopGroup>()->after_failure);
}

TEST_CASE("a success that is learned after a stop was ordered is not reported") {
  Seat seat;
  seat.connect();
  seat.hear(seat.round(1));
  seat.hear(Stop{Round(1), 15, milliseconds(1000), "lost gpu-02"});
  seat.forget();
  seat.feed(GroupSucceeded{Round(1)});
  CHECK_FALSE(seat.said<Report>().has_value());
  seat.feed(GroupGone{Round(1)});
  CHECK(seat.said<Stopped>()->round == Round(1));
}

TEST_CASE("a coordinator that stays away is named, after the workers were stopped") {
  Seat seat;
  seat.connect();
  seat.hear(seat.round(1));
  seat.feed(LinkDown{seat.link_, "connection reset"});
  for (int second = 0; second < 60; ++second) {
    seat.after(seconds(1));
    seat.feed(LinkDown{seat.link_, "connection refused"});
  }
  CHECK(seat.done<StopGroup>().has_value());
  CHECK_FALSE(seat.membership_.ended());
  seat.feed(GroupGone{Round(1)});
  REQUIRE(seat.done<End>().has_value());
  CHECK(seat.done<End>()->exit_code == kExitCoordinatorLost);
  CHECK(seat.done<End>()->text ==
        "the coordinator 10.0.4.11:29400 did not answer for 1 min "
        "(--rdzv-conf coordinator_timeout=60); last attempt: connection refused");
}

TEST_CASE("silence of the coordinator ends the link, not the workers") {
  Seat seat;
  seat.connect();
  seat.hear(seat.round(1));
  for (int second = 0; second < 5; ++second) seat.after(seconds(1));
  CHECK(seat.done<CloseLink>().has_value());
  CHECK_FALSE(seat.done<StopGroup>().has_value());
  CHECK(seat.said<Beat>().has_value());
}

TEST_CASE("a stop of another round is dropped, one of this round is answered when all are gone") {
  Seat seat;
  seat.connect();
  seat.hear(seat.round(2));
  seat.hear(Stop{Round(1), 15, milliseconds(0), "old"});
  CHECK(seat.membership_.stale() == 1);
  seat.hear(Stop{Round(2), 15, milliseconds(30'000), "lost gpu-02"});
  CHECK(seat.done<StopGroup>()->round == Round(2));
  CHECK_FALSE(seat.said<Stopped>().has_value());
  seat.feed(GroupGone{Round(2), milliseconds(5), 1, 3});
  CHECK(seat.said<Stopped>()->killed == 1);
  CHECK(seat.said<Stopped>()->stopped == 3);
}

TEST_CASE("leaving tells the coordinator at once and ends when nothing is left") {
  Seat seat;
  seat.connect();
  seat.hear(seat.round(1));
  seat.feed(LeaveAsked{143, "agent got SIGTERM"});
  CHECK(seat.said<Leave>()->exit_code == 143);
  CHECK_FALSE(seat.done<End>().has_value());
  seat.feed(LinkDown{seat.link_, "closed"});
  CHECK_FALSE(seat.done<End>().has_value());
  seat.feed(GroupGone{Round(1)});
  CHECK(seat.done<End>()->exit_code == 143);
}

TEST_CASE("a node that leaves a run that has failed gets the report and the code of the failure") {
  Seat seat;
  seat.connect();
  seat.hear(seat.round(1));
  seat.feed(LeaveAsked{143, "agent got SIGTERM"});
  seat.feed(GroupGone{Round(1)});
  CHECK(seat.said<Leave>()->round == Round(1));
  CHECK(seat.said<Stopped>().has_value());
  CHECK_FALSE(seat.done<End>().has_value());
  seat.hear(Done{5, "rank 1 (gpu-02) failed: exit code 5", RunFailure{}});
  CHECK(seat.done<End>()->exit_code == 5);
  REQUIRE(seat.done<End>()->done);
  CHECK(seat.done<End>()->done->failure);
}

TEST_CASE(
    "a node that leaves and is assigned a round starts nothing and reports when its workers are "
    "gone") {
  Seat seat;
  seat.connect();
  seat.hear(seat.round(1));
  seat.feed(LeaveAsked{143, "agent got SIGTERM"});
  seat.forget();
  seat.hear(seat.round(2));
  seat.feed(GroupGone{Round(1)});
  CHECK_FALSE(seat.done<StartGroup>().has_value());
  CHECK(seat.said<Stopped>()->round == Round(2));
}

TEST_CASE("a second request to leave waits 1 s for the answer, and an announced verdict stands") {
  for (const bool announced : {false, true}) {
    Seat seat;
    seat.connect();
    seat.hear(seat.round(1));
    Stop stop{Round(1), 15, milliseconds(30'000), "rank 1 (gpu-02) failed: exit code 5"};
    stop.verdict = Done{5, stop.reason, RunFailure{}};
    if (announced) seat.hear(stop);
    seat.feed(LeaveAsked{143, "agent got SIGTERM"});
    seat.feed(GroupGone{Round(1)});
    CHECK_FALSE(seat.done<End>().has_value());
    seat.feed(LeaveAsked{143, "agent got SIGTERM"});
    CHECK_FALSE(seat.done<End>().has_value());
    seat.after(seconds(1));
    CHECK(seat.done<End>()->exit_code == (announced ? 5 : 143));
    CHECK(seat.done<End>()->done.has_value() == announced);
  }
}

TEST_CASE("a node that ends while it reconnects does not come back to the run") {
  for (const bool connected : {false, true}) {
    Seat seat;
    seat.connect();
    seat.hear(seat.round(1));
    seat.feed(LinkDown{seat.link_, "connection reset"});
    seat.after(seconds(1));
    if (connected) seat.feed(LinkUp{seat.link_});
    seat.forget();
    seat.feed(LeaveAsked{143, "agent got SIGTERM"});
    const bool greeted = seat.said<Leave>().has_value();
    CHECK(greeted == connected);
    CHECK(seat.done<CloseLink>().has_value() == !connected);
    seat.feed(LinkUp{seat.link_});
    CHECK_FALSE(seat.said<Hello>());
    seat.feed(GroupGone{Round(1)});
    CHECK(seat.done<End>()->exit_code == 143);
  }
}

TEST_CASE("a node that leaves does not wait for a silent coordinator beyond the silence limit") {
  Seat seat;
  seat.connect();
  seat.hear(seat.round(1));
  seat.feed(LeaveAsked{143, "agent got SIGTERM"});
  seat.feed(GroupGone{Round(1)});
  for (int second = 0; second < 5; ++second) seat.after(seconds(1));
  CHECK(seat.done<End>()->exit_code == 143);
}

TEST_CASE("a node that leaves does not report the loss of the coordinator that lets it go") {
  Seat seat;
  seat.connect();
  seat.hear(seat.round(1));
  seat.feed(LeaveAsked{143, "agent got SIGTERM"});
  seat.forget();
  seat.feed(LinkDown{seat.link_, "closed"});
  CHECK_FALSE(seat.done<Note>().has_value());
  seat.feed(GroupGone{Round(1)});
  CHECK(seat.done<End>()->exit_code == 143);
}

TEST_CASE("a limit that is not a whole number of seconds is printed exactly") {
  Seat seat(milliseconds(1500));
  seat.connect();
  seat.hear(seat.round(1));
  seat.feed(LinkDown{seat.link_, "connection reset"});
  CHECK(seat.done<Note>()->text.find("for 1.5 s (--rdzv-conf") != std::string::npos);
  seat.after(milliseconds(1499));
  CHECK_FALSE(seat.done<StopGroup>().has_value());
  seat.after(milliseconds(1));
  CHECK(seat.done<StopGroup>().has_value());
}

TEST_CASE("a taken node rank is tried once more, then it is final") {
  Seat seat;
  seat.connect();
  const Refused taken{RefusalCode::kNodeRankTaken, "--node-rank 0 is taken", milliseconds(5000)};
  seat.hear(taken);
  CHECK_FALSE(seat.membership_.ended());
  seat.after(seconds(5));
  seat.feed(LinkUp{seat.link_});
  seat.hear(taken);
  REQUIRE(seat.done<End>().has_value());
  CHECK(seat.done<End>()->exit_code == kExitRefused);
}

TEST_CASE("a node rank that numbers nothing is given up where another node has it, or none can") {
  for (const auto& [code, tries] :
       {std::pair(RefusalCode::kNodeRankTaken, 2), std::pair(RefusalCode::kNodeRankTooHigh, 1)}) {
    for (const bool decides : {false, true}) {
      MembershipOptions options = Seat::options(seconds(60), 2);
      options.hello.node_rank = 1;
      options.rank_decides = decides;
      Seat seat(std::move(options));
      seat.connect();
      CHECK(seat.said<Hello>()->node_rank == 1);
      const milliseconds again(code == RefusalCode::kNodeRankTaken ? 5000 : 0);
      for (int i = 0; i < tries; ++i) {
        seat.hear(Refused{code, "--node-rank 1 of b is taken by a", again});
        seat.after(seconds(5));
        if (!seat.membership_.ended()) seat.feed(LinkUp{seat.link_});
      }
      CHECK(seat.membership_.ended() == decides);
      if (!decides) CHECK_FALSE(seat.said<Hello>()->node_rank.has_value());
    }
  }
}

TEST_CASE("a wait is reported after 3 s, once per change, with its end and the option") {
  Seat seat;
  seat.connect();
  Waiting waiting{1, 2, 4, Round(0), seconds(600), "waiting for nodes: 1 of 2; connected: gpu-01"};
  seat.hear(waiting);
  seat.after(milliseconds(2900));
  CHECK_FALSE(seat.done<Note>().has_value());
  seat.after(milliseconds(100));
  REQUIRE(seat.done<Note>().has_value());
  CHECK(seat.done<Note>()->text ==
        "waiting for nodes: 1 of 2; connected: gpu-01; gives up in 9 min 57 s (--rdzv-conf "
        "join_timeout)");
  seat.forget();
  waiting.left = seconds(590);
  seat.hear(waiting);
  CHECK_FALSE(seat.done<Note>().has_value());
  seat.hear(Waiting{2, 2, 4, Round(0), seconds(30), "last call", protocol::WaitEnd::kRoundStarts});
  CHECK(seat.done<Note>()->text ==
        "last call; the round starts in 30 s (--rdzv-conf last_call_timeout)");
}

TEST_CASE("a wait that a round ends within 3 s is never reported") {
  Seat seat;
  seat.connect();
  seat.hear(Waiting{1, 2, 2, Round(0), seconds(600), "waiting for nodes: 1 of 2"});
  seat.hear(seat.round(1));
  seat.forget();
  seat.after(seconds(4));
  CHECK_FALSE(seat.done<Note>().has_value());
}

TEST_CASE("a coordinator that does not answer yet is named with the cause, after 3 s") {
  Seat seat;
  seat.feed(StoreOpened{4000});
  for (int second = 0; second < 4; ++second) {
    seat.feed(LinkDown{seat.link_, "connection refused"});
    seat.after(seconds(1));
  }
  REQUIRE(seat.done<Note>().has_value());
  CHECK(seat.done<Note>()->text ==
        "waiting for the coordinator 10.0.4.11:29400: connection refused; gives up in 9 min 57 s "
        "(--rdzv-conf join_timeout)");
}

TEST_CASE("causes that alternate are reported once each, without repeating the address") {
  Seat seat;
  seat.feed(StoreOpened{4000});
  int reported = 0;
  for (int second = 0; second < 20; ++second) {
    const std::string cause = second % 2 == 0 ? "connection refused" : "it closed the connection";
    seat.forget();
    seat.feed(LinkDown{seat.link_, "10.0.4.11:29400: " + cause});
    seat.after(seconds(1));
    const auto note = seat.done<Note>();
    if (!note) continue;
    ++reported;
    CHECK(note->text.find("10.0.4.11:29400: " + cause + "; gives up in") != std::string::npos);
    CHECK(note->text.find("29400: 10.0") == std::string::npos);
  }
  CHECK(reported == 2);
}

TEST_CASE("a server that accepts the connection and sends nothing is reported") {
  Seat seat;
  seat.feed(StoreOpened{4000});
  seat.feed(LinkUp{seat.link_});
  for (int second = 0; second < 3; ++second) seat.after(seconds(1));
  REQUIRE(seat.done<Note>().has_value());
  CHECK(seat.done<Note>()->text ==
        "waiting for the coordinator 10.0.4.11:29400; gives up in 9 min 57 s (--rdzv-conf "
        "join_timeout)");
  for (int second = 0; second < 2; ++second) seat.after(seconds(1));
  REQUIRE(seat.done<Note>().has_value());
  CHECK(seat.done<Note>()->text.find("it accepts the connection and sends nothing; gives up in") !=
        std::string::npos);
}

TEST_CASE(
    "a node that retries its node rank reports when, and the loss of the coordinator meanwhile") {
  Seat seat;
  seat.connect();
  seat.hear(Refused{RefusalCode::kNodeRankTaken, "--node-rank 0 is taken", milliseconds(5000)});
  CHECK(seat.done<Note>()->text == "--node-rank 0 is taken; retrying in 5 s");
  seat.after(seconds(5));
  seat.feed(LinkDown{seat.link_, "connection refused"});
  CHECK(seat.done<Note>()->text ==
        "lost the coordinator 10.0.4.11:29400: connection refused; retrying for 1 min "
        "(--rdzv-conf coordinator_timeout)");
  seat.forget();
  seat.after(seconds(1));
  seat.feed(LinkDown{seat.link_, "connection refused"});
  CHECK_FALSE(seat.done<Note>().has_value());
}

TEST_CASE("the loss of the coordinator and its return are both reported") {
  Seat seat;
  seat.connect();
  seat.hear(seat.round(1));
  seat.feed(LinkDown{seat.link_, "connection reset"});
  CHECK(seat.done<Note>()->text ==
        "lost the coordinator 10.0.4.11:29400: connection reset; retrying for 1 min "
        "(--rdzv-conf coordinator_timeout), the workers keep running");
  seat.after(seconds(1));
  seat.feed(LinkUp{seat.link_});
  seat.hear(Beat{});
  CHECK(seat.done<Note>()->text == "the coordinator 10.0.4.11:29400 answers again");
}

TEST_CASE("a number in a heartbeat of the coordinator is sent back behind all reports") {
  Seat seat;
  seat.connect();
  seat.hear(seat.round(1));
  seat.feed(GroupRunning{Round(1)});
  seat.forget();
  seat.hear(Beat{});
  CHECK_FALSE(seat.said<Beat>().has_value());
  seat.hear(Beat{7});
  CHECK(seat.said<Beat>() == Beat{7});
}
