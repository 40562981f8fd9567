// The rules of a run, one by one, where a scenario would hide them: fences, deadlines, addresses,
// refusals.
#include "tests/round/desk.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;
using namespace ddprun::round;
using namespace ddprun::protocol;
using namespace ddprun::test;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_CASE("a report of another round changes nothing and is counted") {
  Desk desk;
  desk.join_two();
  desk.say(1, desk.report(7, NodeState::kFailed));
  CHECK(desk.run_.status(desk.now_).phase == Phase::kRunning);
  CHECK(desk.run_.status(desk.now_).counters.stale == 1);
}

TEST_CASE("a beat is answered with a beat") {
  Desk desk;
  desk.join_two();
  desk.say(2, Beat{});
  CHECK(desk.last<Beat>(2).has_value());
  CHECK_FALSE(desk.last<Beat>(1).has_value());
}

TEST_CASE("no command line is in what the status page shows of a refusal") {
  Desk desk;
  Hello first = desk.hello("a", 2, 2);
  first.fingerprint = first.command = "train.py --token=s3cret";
  desk.say(1, first);
  Hello other = desk.hello("b", 2, 2);
  other.fingerprint = other.command = "eval.py";
  desk.say(2, other);
  CHECK(desk.last<Refused>(2)->code == RefusalCode::kCommandDiffers);
  CHECK(std::count(desk.notes_.begin(), desk.notes_.end(), "refused b: it runs another command") ==
        1);
}

TEST_CASE("a hello that is older than one already taken changes nothing") {
  Desk desk;
  desk.join_two();
  Hello again = desk.hello_again();
  again.age = seconds(9);
  desk.beat_for(seconds(9), {1, 2});
  desk.say(2, Reconnecting{"no heartbeat for 5 s"});
  desk.say(3, again);
  again.age = seconds(7);
  desk.say(4, again);
  desk.say(3, *desk.last<Beat>(3));
  CHECK(desk.closed_ == std::vector<LinkId>{LinkId(2), LinkId(4)});
  desk.say(3, Beat{});
  CHECK(desk.last<Beat>(3).has_value());
}

TEST_CASE("a node beside the coordinator is told to the others by the address they know") {
  Desk desk;
  desk.say(1, desk.hello("a", 2, 2), {"127.0.0.1", "127.0.0.1"});
  desk.say(2, desk.hello("b", 2, 2), {"10.0.0.2", "10.0.0.1"});
  REQUIRE(desk.last<StartRound>(2).has_value());
  CHECK(desk.last<StartRound>(2)->master_address == "10.0.0.1");
  CHECK(desk.last<StartRound>(1)->master_address == "10.0.0.1");
  CHECK(desk.last<StartRound>(1)->master_port == 4000);
}

TEST_CASE("how the coordinator's own node reaches itself is told to no other node") {
  // A name with two addresses, of which the others have a route to the second alone.
  const auto told = [](bool says_so, const Peer& own) {
    Desk desk;
    Hello root = desk.hello("a", 2, 2);
    root.runs_coordinator = says_so;
    root.reached = own.local_address;
    desk.say(1, root, own);
    desk.say(2, desk.hello("b", 2, 2), {"10.0.0.2", "10.0.0.1"});
    CHECK(desk.last<StartRound>(1)->master_address == "10.0.0.1");
    return desk.last<StartRound>(2)->master_address;
  };
  CHECK(told(false, {"fd77::1", "fd77::1"}) == "10.0.0.1");
  CHECK(told(true, {"203.0.113.5", "10.1.0.2"}) == "10.0.0.1");  // forwarded back to it
}

TEST_CASE("each node is told the address of the coordinator's node that its own link reached") {
  Desk desk;
  Hello root = desk.hello("a", 4, 4);
  root.runs_coordinator = true;
  root.reached = "127.0.0.1";
  Hello behind = desk.hello("b", 4, 4);
  behind.reached = "203.0.113.5";  // forwarded to 10.1.0.2
  Hello linked = desk.hello("c", 4, 4);
  linked.reached = "fe80::1%eth1";
  desk.say(1, root, {"127.0.0.1", "127.0.0.1"});
  desk.say(3, linked, {"fe80::3", "fe80::1"});
  desk.say(2, behind, {"203.0.113.6", "10.1.0.2"});
  desk.say(4, desk.hello("d", 4, 4), {"10.9.0.4", "10.9.0.1"});  // an agent that does not tell
  CHECK(desk.last<StartRound>(1)->master_address == "10.1.0.2");
  CHECK(desk.last<StartRound>(2)->master_address == "203.0.113.5");
  CHECK(desk.last<StartRound>(3)->master_address == "fe80::1%eth1");
  CHECK(desk.last<StartRound>(4)->master_address == "10.9.0.1");
}

TEST_CASE("an address that the user gave is told as it is") {
  Desk desk;
  Hello hello = desk.hello("a", 2, 2);
  hello.address = "192.168.7.1";
  desk.say(1, hello);
  desk.say(2, desk.hello("b", 2, 2));
  CHECK(desk.last<StartRound>(2)->master_address == "192.168.7.1");
}

TEST_CASE("a node whose given address is forwarded to it uses one of its own") {
  Desk desk;
  Hello root = desk.hello("a", 2, 2);
  root.address = "203.0.113.5";
  root.addresses = {"10.1.0.2"};
  desk.say(1, root);
  desk.say(2, desk.hello("b", 2, 2));
  CHECK(desk.last<StartRound>(1)->master_address == "10.1.0.2");
  CHECK(desk.last<StartRound>(2)->master_address == "203.0.113.5");
}

TEST_CASE("group rank 0 is told all addresses from which the nodes may come to its store") {
  Desk desk;
  Hello first = desk.hello("a", 2, 2);
  first.addresses = {"10.0.0.1", "192.168.7.1", "::ffff:10.9.0.1"};
  first.address = "10.8.0.1";
  Hello second = desk.hello("b", 2, 2);
  second.addresses = {"10.0.0.2", "fd00::2%eth0", "127.0.0.1", "no address"};
  desk.say(1, first, {"127.0.0.1", "127.0.0.1"});
  desk.say(2, second, {"203.0.113.2", "10.0.0.1"});
  REQUIRE(desk.last<StartRound>(1).has_value());
  const std::vector<std::string> all{"10.0.0.1",    "10.0.0.2",    "10.8.0.1", "10.9.0.1",
                                     "192.168.7.1", "203.0.113.2", "fd00::2"};
  CHECK(desk.last<StartRound>(1)->store_peers == all);
  CHECK(desk.last<StartRound>(2)->store_peers.empty());
}

TEST_CASE("where one node does not tell its addresses the store is told none") {
  Desk desk;
  Hello first = desk.hello("a", 2, 2);
  first.addresses = {"10.0.0.1"};
  desk.say(1, first);
  desk.say(2, desk.hello("b", 2, 2));
  REQUIRE(desk.last<StartRound>(1).has_value());
  CHECK(desk.last<StartRound>(1)->store_peers.empty());
}

TEST_CASE("a spent store is never told twice: the next round waits for the new port") {
  Desk desk;
  desk.join_two(1);
  REQUIRE(desk.last<StartRound>(1)->stamp.number == Round(1));
  desk.forget();
  desk.lose(2);
  CHECK_FALSE(desk.last<StartRound>(1).has_value());
  desk.say(1, desk.report(1, NodeState::kStarting, 4001));
  REQUIRE(desk.last<StartRound>(1).has_value());
  CHECK(desk.last<StartRound>(1)->master_port == 4001);
}

TEST_CASE("an agent that beats but does not answer its round is dropped at the limit") {
  Desk desk;
  desk.join_two(1);
  desk.say(1, desk.report(1, NodeState::kStarting, 4001));
  desk.beat_for(seconds(10), {1, 2});
  REQUIRE(desk.last<Refused>(2).has_value());
  CHECK(desk.last<Refused>(2)->code == RefusalCode::kNotAnswering);
  CHECK(desk.last<StartRound>(1)->group_size == 1);
}

TEST_CASE("an agent that disagrees about the run is refused with both values") {
  Desk desk;
  desk.say(1, desk.hello("a", 2, 4));
  desk.say(2, desk.hello("b", 2, 3));
  REQUIRE(desk.last<Refused>(2).has_value());
  CHECK(desk.last<Refused>(2)->sentence ==
        "run 7f3a (first node a at 10.0.0.2) has --nnodes 2:4, b has 2:3" + kGiveAllTheSame);
  Hello other = desk.hello("c", 2, 4);
  other.terms.hang_timeout = seconds(9);
  desk.say(3, other);
  CHECK(desk.last<Refused>(3)->code == RefusalCode::kTermsDiffer);
  Hello high = desk.hello("d", 2, 4);
  high.node_rank = 4;
  desk.say(4, high);
  CHECK(desk.last<Refused>(4)->code == RefusalCode::kNodeRankTooHigh);
  Hello old = desk.hello("e", 2, 4);
  old.protocol = 2;
  desk.say(5, old);
  CHECK(desk.last<Refused>(5)->code == RefusalCode::kProtocol);
  CHECK(desk.closed_.size() == 4);
}

TEST_CASE("a node with other arguments and another limit of restarts takes part, with a note") {
  Desk desk;
  Hello first = desk.hello("a", 2, 2);
  first.fingerprint = first.command = "train.py --bs 64";
  first.terms.program = "train.py";
  desk.say(1, first);
  Hello second = desk.hello("b", 2, 2);
  second.fingerprint = second.command = "train.py --bs 32";
  second.terms.program = "train.py";
  second.terms.max_restarts = 9;
  desk.say(2, second);
  CHECK(desk.last<StartRound>(1)->group_size == 2);
  CHECK(desk.last<StartRound>(2).has_value());
  const std::string restarts = std::to_string(first.terms.max_restarts);
  for (const std::string& note :
       {std::string("b has other arguments than a"),
        "b has --max-restarts 9, the run has that of its first node a: " + restarts}) {
    CHECK(std::count(desk.notes_.begin(), desk.notes_.end(), note) == 1);
  }
}

TEST_CASE("a run with a name takes other programs and numbers of nodes, one without does not") {
  for (const bool is_named : {false, true}) {
    Desk desk;
    Hello first = desk.hello("a", 2, 3);
    first.fingerprint = first.terms.program = "train.py";
    first.terms.is_named = is_named;
    desk.say(1, first);
    Hello second = desk.hello("b", 2, 2);
    second.fingerprint = second.terms.program = "eval.py";
    second.terms.is_named = is_named;
    desk.say(2, second);
    CHECK(desk.last<Refused>(2).has_value() != is_named);
    Hello third = desk.hello("c", 2, 3);
    third.fingerprint = third.terms.program = "train.py";
    third.terms.is_named = !is_named;
    third.terms.nodes_min = 1;
    desk.say(3, third);
    CHECK(desk.last<Refused>(3).has_value());
  }
}

TEST_CASE("a refusal that leaves too few nodes is told to those that wait") {
  Desk desk;
  desk.say(1, desk.hello("a", 2, 2));
  desk.say(2, desk.hello("b", 2, 3));
  desk.beat_for(seconds(2), {1});
  const std::string told = "; b was refused: run 7f3a (first node a at 10.0.0.2) has --nnodes";
  CHECK(desk.last<Waiting>(1)->text.find(told) != std::string::npos);
  desk.say(3, desk.hello("b", 2, 2));
  CHECK(desk.last<StartRound>(1).has_value());
}

TEST_CASE("another command is refused, and one that is not told") {
  Desk desk;
  Hello first = desk.hello("a", 2, 2);
  first.fingerprint = "train.py#1";
  desk.say(1, first);
  Hello second = desk.hello("b", 2, 2);
  second.fingerprint = "train.py#2";
  desk.say(2, second);
  CHECK(desk.last<Refused>(2)->code == RefusalCode::kCommandDiffers);
  second.fingerprint.clear();
  desk.say(3, second);
  CHECK(desk.last<Refused>(3)->code == RefusalCode::kCommandDiffers);
  second.fingerprint = first.fingerprint;
  desk.say(4, second);
  CHECK(desk.last<StartRound>(4).has_value());
}

TEST_CASE("the earliest failure on the coordinator's clock is the one that is reported") {
  Desk desk;
  desk.join_two();
  desk.both_run();
  const auto failed = [&desk](int rank, int code, Duration after) {
    Report report = desk.report(1, NodeState::kFailed);
    WorkerExit& exit = report.failure.emplace();
    exit.worker.rank = Rank(rank);
    exit.status = ExitStatus::exited(code);
    exit.after = std::chrono::duration_cast<milliseconds>(after);
    return report;
  };
  desk.now_ += seconds(10);
  desk.say(2, failed(1, 1, milliseconds(9'900)));  // a consequence, but reported first
  desk.say(1, failed(0, 42, milliseconds(9'500)));
  desk.say(1, Stopped{Round(1), milliseconds(5), 0, 0});
  CHECK_FALSE(desk.last<Done>(1).has_value());
  desk.say(2, Stopped{Round(1), milliseconds(5), 0, 0});
  REQUIRE(desk.last<Done>(1).has_value());
  CHECK(desk.last<Done>(1)->exit_code == 42);
  CHECK(*desk.last<Done>(1) == *desk.last<Done>(2));
}

namespace {

/// Its only rank fails; the agent has nothing left when it has said so.
void fail_round(Desk& desk, std::uint64_t link, int round) {
  Report report = desk.report(round, NodeState::kFailed);
  report.failure.emplace();
  desk.say(link, report);
  desk.say(link, Stopped{Round(round), milliseconds(1), 0, 0});
}

}  // namespace

TEST_CASE("a node that ended its workers without a failure or a stop ends the round") {
  for (const bool has_finished : {false, true}) {
    Desk desk;
    desk.join_two();
    desk.both_run();
    if (has_finished) desk.say(2, desk.report(1, NodeState::kSucceeded));
    desk.say(2, Stopped{Round(1), milliseconds(5), 0, 1});
    const StartRound newest = *desk.last<StartRound>(1);
    CHECK(newest.stamp.number == Round(has_finished ? 1 : 2));
    CHECK(newest.restarts == RestartCount(0));
    const std::string why = "b (rank 1) ended its workers without a failure or a stop";
    CHECK((newest.reason.find(why) != std::string::npos) == !has_finished);
    if (has_finished) continue;
    desk.both_run(2);
    desk.say(1, Stopped{Round(2), milliseconds(5), 0, 1});
    CHECK(desk.last<StartRound>(2)->stamp.number == Round(2));  // not at once the second time
    desk.after(kRestartDelayMin);
    CHECK(desk.last<StartRound>(2)->stamp.number == Round(3));
  }
}

TEST_CASE("rounds that fail at once start again later and later, until one lives long enough") {
  Desk desk;
  Hello hello = desk.hello("a", 1, 1);
  hello.terms.max_restarts = 100;
  desk.say(1, hello);
  int round = 1;
  for (const int delay_ms : {0, 100, 200, 400, 800, 1600, 3200, 5000, 5000}) {
    desk.say(1, desk.report(round, NodeState::kRunning));
    desk.now_ += milliseconds(1);
    fail_round(desk, 1, round++);
    if (delay_ms > 0) {
      CHECK(desk.armed_ <= desk.now_ + milliseconds(delay_ms));
      desk.after(milliseconds(delay_ms) - std::chrono::microseconds(1));
      CHECK(desk.last<StartRound>(1)->stamp.number == Round(round - 1));
      desk.say(1, Beat{});
      desk.after(std::chrono::microseconds(1));
    }
    REQUIRE(desk.last<StartRound>(1)->stamp.number == Round(round));
    const bool told = desk.last<StartRound>(1)->reason.find("delay doubles") != std::string::npos;
    CHECK(told == (delay_ms == 100));
  }
  desk.say(1, desk.report(round, NodeState::kRunning));
  for (int second = 0; second < 6; ++second) {
    desk.now_ += seconds(1);
    desk.say(1, Beat{});
  }
  fail_round(desk, 1, round);
  CHECK(desk.last<StartRound>(1)->stamp.number == Round(round + 1));
}

TEST_CASE("rounds whose ranks have finished a step start again at once, however soon they fail") {
  Desk desk;
  Hello hello = desk.hello("a", 1, 1);
  hello.terms.max_restarts = 100;
  desk.say(1, hello);
  for (int round = 1; round < 9; ++round) {
    desk.say(1, desk.report(round, NodeState::kRunning));
    desk.now_ += milliseconds(1);
    Report failed = desk.failed(round, 1);
    failed.failure->evidence.stepped = true;
    failed.store_port = static_cast<std::uint16_t>(4000 + round);
    desk.say(1, failed);
    REQUIRE(desk.last<StartRound>(1)->stamp.number == Round(round + 1));
  }
}

TEST_CASE("while a restart is delayed, a node that leaves or a shutdown acts at once") {
  for (const bool leaves : {true, false}) {
    Desk desk;
    for (const auto& [link, host] : {std::pair(1, "a"), std::pair(2, "b")}) {
      Hello hello = desk.hello(host, 2, 2);
      hello.terms.max_restarts = 9;
      desk.say(static_cast<std::uint64_t>(link), hello);
    }
    desk.say(1, desk.report(1, NodeState::kRunning, 4001));
    fail_round(desk, 2, 1);
    REQUIRE(desk.last<StartRound>(2)->stamp.number == Round(2));
    desk.say(1, desk.report(2, NodeState::kRunning, 4002));
    fail_round(desk, 2, 2);
    REQUIRE(desk.last<Stop>(1).has_value());  // its workers do not wait for the restart
    desk.say(1, Stopped{Round(2), milliseconds(1), 0, 1});
    if (leaves) {
      desk.say(1, Leave{143, "SIGTERM received"});
    } else {
      desk.shut_down();
      desk.after(Duration(0));
    }
    CHECK(desk.run_.over());
  }
}

TEST_CASE("a rank that ends in the stop of a delayed restart does not replace the first failure") {
  Desk desk;
  for (const auto& [link, host] : {std::pair(1, "a"), std::pair(2, "b")}) {
    Hello hello = desk.hello(host, 2, 2);
    hello.terms.max_restarts = 9;
    desk.say(static_cast<std::uint64_t>(link), hello);
  }
  for (const int round : {1, 2}) {
    desk.say(1, desk.report(round, NodeState::kRunning, static_cast<std::uint16_t>(4000 + round)));
    fail_round(desk, 2, round);
  }
  desk.shut_down();
  Stopped held{Round(2), milliseconds(1), 0, 1};
  held.failure = desk.failed(2, 99).failure;
  desk.say(1, held);
  desk.say(2, Stopped{Round(2), milliseconds(1), 0, 0});
  REQUIRE(desk.last<Done>(1).has_value());
  CHECK(desk.last<Done>(1)->exit_code != 99);
  CHECK(desk.last<Done>(1)->failure->first.status.code() != 99);
}

TEST_CASE("success is sent to all agents, and the run can be forgotten when they have gone") {
  Desk desk;
  desk.join_two();
  desk.say(1, desk.report(1, NodeState::kSucceeded));
  CHECK_FALSE(desk.last<Done>(1).has_value());
  desk.now_ += seconds(3600);
  desk.say(2, desk.report(1, NodeState::kSucceeded));
  CHECK(desk.last<Done>(1)->exit_code == 0);
  desk.lose(1);
  CHECK_FALSE(desk.finish_.has_value());
  desk.lose(2);
  REQUIRE(desk.finish_.has_value());
  CHECK(desk.finish_->exit_code == 0);
}

TEST_CASE("an agent older than the end of the run belongs to it, a younger one begins a new run") {
  Desk desk;
  desk.say(1, desk.hello("a", 1, 1));
  desk.say(1, desk.report(1, NodeState::kSucceeded));
  desk.now_ += seconds(10);
  Hello late = desk.hello("late", 1, 1);
  late.age = seconds(11);
  CHECK_FALSE(desk.run_.starts_new_run(late, desk.now_));
  late.age = seconds(9);
  CHECK(desk.run_.starts_new_run(late, desk.now_));
}

TEST_CASE("an agent after a success ends with 0 if fewer nodes than it had start the run again") {
  for (const bool others_come : {false, true}) {
    Desk desk;
    Done done;
    done.text = "2 ranks on 2 nodes ended with 0; 0 restarts";
    desk.run_ = Run({RunId("7f3a"), "c1.2", Ended{done, desk.now_ - seconds(12), 2}});
    desk.say(1, desk.hello("late", 1, 2));
    CHECK(desk.last<Waiting>(1)->left == seconds(30));
    desk.beat_for(seconds(29), {1});
    CHECK(desk.last<Waiting>(1)->text ==
          "run 7f3a succeeded 13 s ago and may start again; waiting for nodes: 1 of at most 2; "
          "connected: late");
    if (others_come) desk.say(2, desk.hello("b", 1, 2));
    desk.after(seconds(1));
    CHECK(desk.last<StartRound>(1).has_value() == others_come);
    CHECK(desk.last<Done>(1).has_value() != others_come);
    if (others_come) continue;
    CHECK(desk.last<Done>(1)->exit_code == 0);
    CHECK(desk.last<Done>(1)->text ==
          "run 7f3a finished with code 0 42 s ago (2 ranks on 2 nodes ended with 0; 0 restarts); "
          "nothing to do: only 1 of 2 nodes joined within 30 s (--rdzv-conf last_call_timeout) to "
          "start it again; use a different --rdzv-id for a new run");
    CHECK(desk.run_.success()->verdict.text == done.text);  // the next late agent gets the same
  }
}

TEST_CASE("anything but a hello on a link without an agent closes the link, without a refusal") {
  Desk desk;
  desk.say(9, Beat{});
  CHECK(desk.closed_ == std::vector<LinkId>{LinkId(9)});
  CHECK_FALSE(desk.last<Refused>(9).has_value());
}

TEST_CASE("a node not heard of since a failure was lost before, and is its cause") {
  enum class Heard { kNothing, kBeat, kAnswer };
  for (const Heard heard : {Heard::kNothing, Heard::kBeat, Heard::kAnswer}) {
    Desk desk;
    desk.join_two(1);
    desk.say(1, desk.report(1, NodeState::kRunning));
    Report report = desk.report(1, NodeState::kFailed);
    report.failure.emplace();
    desk.now_ += milliseconds(1);
    desk.say(2, report);
    desk.now_ += milliseconds(1);
    if (heard == Heard::kBeat) desk.say(1, Beat{});  // its workers take their time to stop
    if (heard == Heard::kAnswer) desk.say(1, Stopped{Round(1), milliseconds(1), 0, 1});
    desk.lose(1);
    desk.say(2, Stopped{Round(1), milliseconds(1), 0, 0});
    const bool verdict_stands = heard != Heard::kNothing;
    CHECK(desk.last<Done>(2).has_value() == verdict_stands);
    CHECK(desk.last<StartRound>(2)->stamp.number == Round(verdict_stands ? 1 : 2));
    CHECK(desk.last<StartRound>(2)->restarts == RestartCount(0));
  }
}

TEST_CASE("the coordinator's own node prints the report of a run, else the node that failed") {
  for (const bool hosted : {true, false}) {
    Desk desk;
    Hello first = desk.hello("a", 2, 2);
    first.runs_coordinator = hosted;
    desk.say(1, first);
    desk.say(2, desk.hello("b", 2, 2));
    Report report = desk.report(1, NodeState::kFailed);
    report.failure.emplace();
    desk.say(2, report);
    desk.say(2, Stopped{Round(1), milliseconds(5), 0, 3});
    desk.say(1, Stopped{Round(1), milliseconds(40), 1, 4});
    REQUIRE(desk.last<Done>(1).has_value());
    const Done done = *desk.last<Done>(1);
    CHECK(done.reporter == (hosted ? "id-a" : "id-b"));
    REQUIRE(done.failure.has_value());
    CHECK(done.failure->first.worker.host == "b");
    CHECK(done.failure->round == Round(1));
    CHECK(done.failure->stopped == 7);
    CHECK(done.failure->killed == 1);
    CHECK(done.failure->stop_took == milliseconds(40));
  }
}

TEST_CASE("a success counts although nodes have joined again and again since its round") {
  constexpr int kNodes = 20;
  Desk desk(3);
  desk.say(1, desk.hello("n1", 1, kNodes, Milliseconds(100)));
  desk.after(milliseconds(200));
  desk.say(1, desk.report(1, NodeState::kRunning, 5001));
  for (int node = 2; node < kNodes; ++node) {
    desk.say(static_cast<std::uint64_t>(node), desk.hello("n" + std::to_string(node), 1, kNodes));
    for (int link = 1; link <= node; ++link) {
      const auto port = static_cast<std::uint16_t>(5000 + node);
      desk.say(static_cast<std::uint64_t>(link), desk.report(node, NodeState::kStarting, port));
    }
    desk.after(seconds(1));
  }
  REQUIRE(desk.last<StartRound>(1)->stamp.number > Round(10));
  CHECK(desk.run_.phase() == Phase::kRunning);
  desk.say(1, desk.report(1, NodeState::kSucceeded));
  CHECK(desk.run_.phase() == Phase::kStopping);
}
