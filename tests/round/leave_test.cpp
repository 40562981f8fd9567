// A node without ranks to stop leaves: perhaps all ranks of the round had exited with code 0 by
// then, and the reports of that are on their way.
#include "tests/round/desk.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::round;
using namespace ddprun::protocol;

namespace {

const Leave kInterrupted{130, "SIGINT received", Round(1)};

/// Nodes "a", "b" and "c" on links 1 to 3 run; "a" has group rank 0.
Desk three_that_run() {
  Desk desk;
  for (const std::uint64_t link : {1U, 2U, 3U}) {
    desk.say(link, desk.hello(std::string(1, static_cast<char>('a' + link - 1)), 2, 3));
  }
  for (const std::uint64_t link : {1U, 2U, 3U}) {
    desk.say(link, desk.report(1, NodeState::kRunning, static_cast<std::uint16_t>(5000 + link)));
  }
  desk.forget();
  return desk;
}

/// Nodes "a" and "b" run; "c", which has no rank but the coordinator, gets SIGTERM.
Desk two_that_run_and_a_root_that_leaves() {
  Desk desk;
  desk.join_two();
  Hello spare = desk.hello("c", 2, 2);
  spare.runs_coordinator = true;
  desk.say(3, spare);
  desk.both_run();
  desk.say(3, Leave{143, "SIGTERM received", Round(0)});
  return desk;
}

}  // namespace

TEST_CASE("a node that has finished leaves behind the successes that are on their way") {
  for (const bool succeeded : {true, false}) {
    Desk desk = three_that_run();
    desk.say(1, desk.report(1, NodeState::kSucceeded));
    desk.say(2, desk.report(1, NodeState::kSucceeded));
    desk.say(1, kInterrupted);  // it serves the store of the round
    CHECK(desk.closed_.empty());
    CHECK_FALSE(desk.last<Beat>(2).has_value());
    REQUIRE(desk.last<Beat>(3).has_value());
    if (succeeded) desk.say(3, desk.report(1, NodeState::kSucceeded));
    desk.say(3, *desk.last<Beat>(3));
    if (succeeded) {
      for (const std::uint64_t link : {1U, 2U, 3U}) CHECK(desk.last<Done>(link)->exit_code == 0);
    } else {
      CHECK(desk.closed_ == std::vector<LinkId>{LinkId(1)});
      CHECK_FALSE(desk.last<Done>(1).has_value());
      CHECK(desk.last<StartRound>(3)->stamp.number == Round(2));
    }
  }
}

TEST_CASE("a node that runs the coordinator and no rank does not replace a success") {
  for (const bool succeeded : {true, false}) {
    Desk desk = two_that_run_and_a_root_that_leaves();
    CHECK_FALSE(desk.last<Stop>(1).has_value());
    for (const std::uint64_t link : {1U, 2U}) {
      if (succeeded) desk.say(link, desk.report(1, NodeState::kSucceeded));
      desk.say(link, *desk.last<Beat>(link));
      if (!succeeded && link == 2) desk.say(1, Stopped{Round(1), milliseconds(5), 0, 1});
    }
    if (!succeeded) desk.say(2, Stopped{Round(1), milliseconds(5), 0, 1});
    CHECK(desk.last<Done>(1)->exit_code == (succeeded ? 0 : 143));
    CHECK(desk.last<Done>(3).has_value() == succeeded);
  }
}

TEST_CASE("a success that the stop of a run did not overtake stays one") {
  for (const bool all : {true, false}) {
    Desk desk = two_that_run_and_a_root_that_leaves();
    for (const std::uint64_t link : {1U, 2U}) desk.say(link, *desk.last<Beat>(link));
    REQUIRE(desk.last<Stop>(1).has_value());
    desk.say(1, desk.report(1, NodeState::kSucceeded));
    desk.say(1, Stopped{Round(1), milliseconds(0), 0, 0});
    if (all) desk.say(2, desk.report(1, NodeState::kSucceeded));
    desk.say(2, Stopped{Round(1), milliseconds(5), 0, all ? 0 : 1});
    for (const std::uint64_t link : {1U, 2U}) {
      CHECK(desk.last<Done>(link)->exit_code == (all ? 0 : 143));
    }
  }
}

TEST_CASE("a second leave is not answered by what was asked before it") {
  Desk desk = three_that_run();
  desk.say(2, desk.report(1, NodeState::kSucceeded));
  desk.say(3, desk.report(1, NodeState::kSucceeded));
  desk.say(2, kInterrupted);
  const Beat first = desk.last<Beat>(1).value();
  desk.say(3, kInterrupted);
  desk.say(1, first);
  CHECK(desk.closed_ == std::vector<LinkId>{LinkId(2)});
  CHECK(desk.last<Beat>(1)->echo != first.echo);
  desk.say(1, first);
  CHECK(desk.closed_.size() == 1);
  desk.say(1, desk.report(1, NodeState::kSucceeded));
  CHECK(desk.last<Done>(3)->exit_code == 0);
}

TEST_CASE("a node that reconnects is asked again") {
  for (const bool knows : {true, false}) {
    Desk desk;
    desk.join_two(1);
    desk.both_run();
    desk.say(1, desk.report(1, NodeState::kSucceeded));
    desk.say(1, kInterrupted);
    desk.say(2, Reconnecting{"no heartbeat for 5 s"});
    desk.say(3, knows ? desk.hello_again(1) : desk.hello("b", 1, 2));
    CHECK(desk.last<Beat>(3).has_value());
    desk.say(3, desk.report(1, NodeState::kRunning));
    CHECK(desk.closed_.size() == 1);
    desk.say(3, desk.report(1, NodeState::kSucceeded));
    CHECK(desk.last<Done>(1)->exit_code == 0);
  }
}

TEST_CASE("a leave does not wait for a node that never answers") {
  Desk desk;
  desk.join_two(1);
  desk.both_run();
  desk.say(1, desk.report(1, NodeState::kSucceeded));
  desk.say(1, kInterrupted);
  desk.beat_for(kAnswerMax - milliseconds(1), {1, 2});
  CHECK(desk.closed_.empty());
  desk.after(milliseconds(1));
  CHECK(desk.closed_ == std::vector<LinkId>{LinkId(1)});  // it served the store of the round
  CHECK(desk.last<StartRound>(2)->stamp.number == Round(2));
}

TEST_CASE("a leave that is not answered costs no other node") {
  Desk desk = three_that_run();
  desk.say(3, desk.report(1, NodeState::kSucceeded));
  desk.say(3, kInterrupted);
  desk.say(1, *desk.last<Beat>(1));
  desk.beat_for(kAnswerMax - milliseconds(1), {1, 2, 3});
  desk.after(milliseconds(1));
  CHECK(desk.closed_ == std::vector<LinkId>{LinkId(3)});
  desk.say(2, *desk.last<Beat>(2));
  CHECK_FALSE(desk.last<Refused>(2).has_value());
  CHECK_FALSE(desk.last<StartRound>(1).has_value());
  CHECK(desk.run_.status(desk.now_).phase == Phase::kRunning);
  CHECK(desk.run_.status(desk.now_).counters.losses == 1);
}

TEST_CASE("a leave that waits for answers ends with the failure that comes first") {
  Desk desk;
  desk.join_two();
  desk.both_run();
  desk.say(1, desk.report(1, NodeState::kSucceeded));
  desk.say(1, kInterrupted);
  desk.say(2, desk.failed(1, 5));
  CHECK(desk.closed_.empty());
  desk.say(2, Stopped{Round(1), milliseconds(5), 0, 0});
  CHECK(desk.last<Done>(1)->exit_code == 5);
}

TEST_CASE("a stop that was requested on one node is a request to all, also over the next link") {
  for (const bool requested : {true, false}) {
    Desk desk;
    desk.join_two();
    desk.both_run();
    desk.say(1, Leave{143, "SIGTERM received", Round(1), requested});
    CHECK(desk.last<Stop>(2)->requested == requested);
    desk.forget();
    desk.say(2, Reconnecting{"no heartbeat for 5 s"});
    desk.say(4, desk.hello_again());
    CHECK(desk.last<Stop>(4)->requested == requested);
  }
}

TEST_CASE("a failure that a stop finds on its way is no request to save") {
  Desk desk(3);
  desk.join_two();
  desk.both_run();
  desk.say(2, desk.failed(1, 3));
  desk.say(1, Leave{143, "SIGTERM received", Round(1), true});
  desk.say(2, desk.report(2, NodeState::kStarting));
  REQUIRE(desk.last<Stop>(2));
  CHECK(desk.last<Stop>(2)->verdict);
  CHECK_FALSE(desk.last<Stop>(2)->requested);
}

TEST_CASE("a node that leaves is told on how many nodes the run continues, or that it does not") {
  Desk desk = three_that_run();
  desk.say(2, Leave{143, "SIGTERM received", Round(1), true});
  REQUIRE(desk.last<LetGo>(2));
  CHECK(desk.last<LetGo>(2)->text == "the run continues on 2 nodes");
  desk.say(1, desk.report(2, NodeState::kRunning, 5101));
  desk.say(3, desk.report(2, NodeState::kRunning, 5103));
  desk.say(3, Leave{143, "SIGTERM received", Round(2), true});  // of at least two
  REQUIRE(desk.last<LetGo>(3));
  CHECK(desk.last<LetGo>(3)->text == reasons::kEndsEverywhere);
  CHECK(desk.last<Stop>(1));
}

TEST_CASE("a spare node that leaves is told of the round without it") {
  Desk desk;
  desk.join_two(1);
  desk.both_run();
  desk.say(3, desk.hello("c", 1, 2));
  desk.say(3, Leave{143, "SIGTERM received", Round(0), true});
  REQUIRE(desk.last<LetGo>(3));
  CHECK(desk.last<LetGo>(3)->text == "the run continues on 2 nodes");
}

TEST_CASE("a node of the round ends an elastic run on all nodes, where its user asks for that") {
  Desk desk = three_that_run();
  desk.say(2, Leave{143, "SIGTERM from ddprun stop --all-nodes", Round(1), true, true});
  for (const std::uint64_t link : {1U, 3U}) {
    REQUIRE(desk.last<Stop>(link));
    CHECK(desk.last<Stop>(link)->requested);
    CHECK_THAT(desk.last<Stop>(link)->reason, ContainsSubstring(" all nodes from b: "));
  }
  CHECK_FALSE(desk.last<LetGo>(2));
  for (const std::uint64_t link : {1U, 2U, 3U}) desk.say(link, Stopped{Round(1), milliseconds(5)});
  for (const std::uint64_t link : {1U, 2U, 3U}) {
    REQUIRE(desk.last<Done>(link));
    CHECK(desk.last<Done>(link)->exit_code == 143);
  }
}

TEST_CASE("a stop on all nodes is one also while a failure is to be followed by a restart") {
  Desk desk(3);
  desk.join_two(1);
  desk.both_run();
  desk.say(2, desk.failed(1, 3));
  desk.say(1, Leave{143, "SIGTERM received", Round(1), true, true});
  for (const std::uint64_t link : {1U, 2U}) desk.say(link, Stopped{Round(2), milliseconds(5)});
  for (const std::uint64_t link : {1U, 2U}) {
    REQUIRE(desk.last<Done>(link));
    CHECK(desk.last<Done>(link)->exit_code == 3);
    CHECK_THAT(desk.last<Done>(link)->failure->no_restart,
               ContainsSubstring(" all nodes from a: "));
  }
}

TEST_CASE("a node without ranks in the round cannot end the run on all nodes") {
  Desk desk;
  desk.join_two();
  desk.both_run();
  desk.say(3, desk.hello("c", 2, 2));  // a stranger, where the run has no secret
  desk.forget();
  desk.say(3, Leave{143, "SIGTERM received", Round(0), true, true});
  CHECK_FALSE(desk.last<Stop>(1));
  CHECK_FALSE(desk.last<Stop>(2));
  CHECK(desk.run_.phase() == Phase::kRunning);
  REQUIRE(desk.last<LetGo>(3));
  CHECK(desk.last<LetGo>(3)->text == "the run continues on 2 nodes");
}

TEST_CASE("nodes that have left or were lost are still shown, with their ranks and why") {
  Desk desk = three_that_run();
  desk.say(3, Leave{143, "SIGTERM received", Round(1), true});
  desk.after(seconds(2));
  desk.lose(2);
  const std::vector<GoneNode> gone = desk.run_.status(desk.now_).gone;
  REQUIRE(gone.size() == 2);
  CHECK(gone[0].host == "c");
  CHECK(gone[0].ranks == "rank 2");
  CHECK_THAT(gone[0].why, ContainsSubstring("SIGTERM received"));
  CHECK(gone[0].ago == seconds(2));
  CHECK(gone[1].host == "b");
  CHECK_THAT(gone[1].why, ContainsSubstring("connection closed"));
  for (std::uint64_t link = 10; link < 10 + kGoneMax; ++link) {
    desk.say(link, desk.hello("visitor-" + std::to_string(link), 2, 3));
    desk.lose(link);
  }
  CHECK(desk.run_.status(desk.now_).gone.size() == kGoneMax);
  CHECK(desk.run_.status(desk.now_).gone.back().host == "visitor-73");
}

TEST_CASE("a failed run is one in its status, from the verdict to the end") {
  Desk desk;
  desk.join_two();
  desk.both_run();
  CHECK_FALSE(desk.run_.status(desk.now_).verdict);
  desk.say(2, desk.failed(1, 7));
  for (const std::uint64_t link : {1U, 2U}) desk.say(link, Stopped{Round(1), milliseconds(5)});
  REQUIRE(desk.run_.status(desk.now_).verdict);
  CHECK(desk.run_.status(desk.now_).verdict->exit_code == 7);
  desk.lose({1, 2});
  CHECK(desk.run_.status(desk.now_).gone.size() == 2);
  CHECK(desk.run_.status(desk.now_).verdict->exit_code == 7);
}

TEST_CASE("nodes of another version are noted, once for each version") {
  Desk desk;
  int link = 0;
  for (const char* version : {"1.2", "1.2", "1.1", "1.1", ""}) {
    Hello hello = desk.hello(std::string(1, static_cast<char>('a' + link)), 2, 5);
    hello.version = version;
    desk.say(static_cast<std::uint64_t>(++link), hello);
  }
  const auto notes = std::count_if(
      desk.notes_.begin(), desk.notes_.end(),
      [](const std::string& note) { return note.find(" runs ddprun of ") != std::string::npos; });
  CHECK(notes == 2);
  CHECK(desk.run_.status(desk.now_).nodes.at(2).version == "1.1");
}
