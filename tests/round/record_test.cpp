// What a coordinator leaves to the one after it, when no agent may be left that knows.
#include "tests/round/desk.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;
using namespace ddprun::round;
using namespace ddprun::protocol;

namespace {

/// Of a node that trained in round 4, and has not heard how the run ended.
Hello of_round_four(Hello hello) {
  hello.claim = Claim{{Round(4), "c0"}, 0, 2, RestartCount(3), NodeState::kRunning};
  return hello;
}

/// Of a run of two nodes, with times of its own.
RunRecord::Agreed agreed_by_two() {
  RunTerms run_terms{RunId("7f3a"), {}, "", "", "gpu-01", "10.0.0.9"};
  run_terms.terms.nodes_min = run_terms.terms.nodes_max = 2;
  run_terms.terms.keep_alive_interval = milliseconds(700);
  return agreed_on(run_terms);
}

}  // namespace

TEST_CASE("the record has the round, the restarts and the verdict") {
  Desk desk(1);
  CHECK(desk.run_.record() == RunRecord{});
  desk.join_two();
  CHECK(desk.run_.record().round == 1);
  CHECK(desk.run_.record().restarts == 0);
  desk.both_run();
  desk.say(2, desk.failed(1, 3));
  CHECK(desk.run_.record().round == 2);
  CHECK(desk.run_.record().restarts == 1);
  desk.both_run(2);
  desk.say(2, desk.failed(2, 3));
  CHECK(!desk.run_.record().over);
  desk.say(1, Stopped{Round(2)});
  desk.say(2, Stopped{Round(2)});
  const auto over = desk.run_.record().over;
  REQUIRE(over);
  CHECK(over->exit_code == 3);
  CHECK(over->nodes == 2);
}

TEST_CASE("a run that all its nodes have lost at once continues its rounds and its budget") {
  Desk desk(3, RunRecord{7, 2});
  desk.join_two();
  const auto round = desk.last<StartRound>(1);
  REQUIRE(round);
  CHECK(round->stamp.number == Round(8));
  CHECK(round->restarts == RestartCount(2));
  desk.both_run(8);
  desk.say(2, desk.failed(8, 3));
  CHECK(desk.last<StartRound>(1)->restarts == RestartCount(3));
}

TEST_CASE("a budget that has become smaller is used up") {
  Desk desk(1, RunRecord{7, 2});
  desk.join_two();
  CHECK(desk.last<StartRound>(1)->restarts == RestartCount(1));
}

TEST_CASE("nodes that train are found again by what they claim, and not by the record") {
  Desk desk(3, RunRecord{1, 0});
  Hello first = desk.hello("a", 2, 2);
  first.claim = Claim{{Round(1), "c0"}, 0, 2, RestartCount(0), NodeState::kRunning};
  Hello second = desk.hello("b", 2, 2);
  second.claim = Claim{{Round(1), "c0"}, 1, 2, RestartCount(0), NodeState::kRunning};
  desk.say(1, first);
  CHECK(desk.run_.phase() == Phase::kRebuilding);
  desk.say(2, second);
  CHECK(desk.run_.phase() == Phase::kRunning);
  CHECK(!desk.last<StartRound>(1));
}

TEST_CASE("a round that no agent has heard of is not numbered again") {
  Desk desk(3, RunRecord{5, 0});
  Hello only = desk.hello("a", 1, 2);
  only.claim = Claim{{Round(4), "c0"}, 0, 2, RestartCount(0), NodeState::kRunning};
  desk.say(1, only);
  desk.beat_for(seconds(6), {1});
  REQUIRE(desk.last<StartRound>(1));
  CHECK(desk.last<StartRound>(1)->stamp.number == Round(6));
}

TEST_CASE("a node that missed the verdict gets it, and a new one starts a new run") {
  const RunRecord::Verdict verdict{3, "rank 1 failed", 2};
  Desk desk(3, RunRecord{4, 3, verdict});
  Hello late = desk.hello("a", 2, 2);
  late.claim = Claim{{Round(4), "c0"}, 0, 2, RestartCount(3), NodeState::kStopped};
  desk.say(1, late);
  REQUIRE(desk.last<Done>(1));
  CHECK(desk.last<Done>(1)->exit_code == 3);
  CHECK(desk.last<Done>(1)->text == "rank 1 failed");
  desk.say(2, desk.hello("b", 2, 2));
  desk.say(3, desk.hello("c", 2, 2));
  const auto round = desk.last<StartRound>(2);
  REQUIRE(round);
  CHECK(round->stamp.number == Round(5));
  CHECK(round->restarts == RestartCount(0));
}

TEST_CASE("a node that comes after a success alone is late for it") {
  const RunRecord::Verdict verdict{0, "all 4 ranks exited with code 0", 2};
  Desk desk(0, RunRecord{1, 0, verdict});
  desk.say(1, desk.hello("a", 1, 2, milliseconds(2000)));
  desk.beat_for(seconds(3), {1});
  REQUIRE(desk.last<Done>(1));
  CHECK(desk.last<Done>(1)->exit_code == 0);
  CHECK(!desk.last<StartRound>(1));
}

TEST_CASE("a verdict stays until a new run has its first round") {
  const RunRecord::Verdict verdict{3, "rank 1 failed", 2};
  Desk desk(3, RunRecord{4, 3, verdict});
  desk.say(1, of_round_four(desk.hello("a", 2, 2)));
  CHECK(desk.last<Done>(1));
  CHECK(desk.run_.record().over == verdict);
  desk.say(2, desk.hello("b", 2, 2));
  CHECK(desk.run_.record().over == verdict);
  desk.say(3, of_round_four(desk.hello("c", 2, 2)));
  REQUIRE(desk.last<Done>(3));
  CHECK(desk.last<Done>(3)->exit_code == 3);
  desk.say(4, desk.hello("d", 2, 2));
  REQUIRE(desk.last<StartRound>(2));
  CHECK(!desk.run_.record().over);
  CHECK(desk.run_.record().round == 5);
}

TEST_CASE("a node of an ended run gets its verdict while another run of the same id trains") {
  Desk desk(3, RunRecord{4, 3, RunRecord::Verdict{3, "rank 1 failed", 2}});
  desk.say(1, desk.hello("a", 1, 3, milliseconds(0)));
  desk.say(2, desk.hello("b", 1, 3, milliseconds(0)));
  const Round runs = desk.last<StartRound>(1)->stamp.number;
  CHECK(runs > Round(4));
  desk.forget();
  desk.say(3, of_round_four(desk.hello("c", 1, 3)));
  REQUIRE(desk.last<Done>(3));
  CHECK(desk.last<Done>(3)->exit_code == 3);
  CHECK(!desk.last<StartRound>(1));
}

TEST_CASE("a spare node that has heard of the ended run gets the verdict, too") {
  Desk desk(3, RunRecord{4, 3, RunRecord::Verdict{3, "rank 1 failed", 2}});
  Hello spare = desk.hello("a", 1, 2);
  spare.seen = Round(4);
  desk.say(1, spare);
  REQUIRE(desk.last<Done>(1));
  CHECK(desk.last<Done>(1)->exit_code == 3);
  desk.after(seconds(20));
  CHECK(!desk.last<StartRound>(1));
}

TEST_CASE("agents that are late for a success leave its verdict and its number of nodes") {
  const RunRecord::Verdict verdict{0, "all 4 ranks exited with code 0", 3};
  Desk desk(0, RunRecord{1, 0, verdict});
  desk.say(1, desk.hello("a", 1, 4, milliseconds(2000)));
  desk.beat_for(seconds(3), {1});
  CHECK(desk.last<Done>(1)->exit_code == 0);
  CHECK(desk.run_.record().over == verdict);
}

TEST_CASE("another command under the id of a success is not late for it, and starts a new run") {
  RunRecord record{1, 0, RunRecord::Verdict{0, "all 4 ranks exited with code 0", 3}};
  record.agreed = agreed_by_two();
  record.agreed->fingerprint = "f1";
  Desk desk(0, record);
  Hello other = desk.hello("a", 1, 1);
  other.fingerprint = "f2";
  desk.say(1, other);
  REQUIRE(desk.last<StartRound>(1));
  CHECK(desk.last<StartRound>(1)->stamp.number == Round(2));
  CHECK(desk.run_.record().before.size() == 1);
  CHECK(desk.run_.record().agreed->fingerprint == "f2");
}

TEST_CASE(
    "a round that a coordinator began before the verdict, and did not record, is of its run") {
  RunRecord record{4, 0, RunRecord::Verdict{3, "rank 1 failed", 2, 30}};
  Desk desk(3, record);
  Hello late = desk.hello("a", 1, 2);
  late.claim = Claim{{Round(5), "term-20-7f"}, 0, 2, RestartCount(0), NodeState::kRunning};
  desk.say(1, late);
  REQUIRE(desk.last<Done>(1));
  CHECK(desk.last<Done>(1)->exit_code == 3);
  // Of a coordinator after the verdict: of another run.
  late.agent = AgentId("id-b");
  late.claim->stamp.author = "term-31-7f.1";
  desk.say(2, late);
  CHECK(!desk.last<Done>(2));
  CHECK(desk.run_.phase() == Phase::kRebuilding);
}

TEST_CASE("the verdicts of the last runs of an id are kept, each for the nodes of its run") {
  RunRecord record;
  const int runs = static_cast<int>(kEndedRunsMax) + 2;
  for (int i = 1; i <= runs; ++i) {
    record.before = ended_runs(record);
    record.round = 10 * i;
    record.over = RunRecord::Verdict{i, "", 1};
  }
  const auto ended = ended_runs(record);
  CHECK(ended.size() == kEndedRunsMax);
  Hello hello;
  CHECK(missed_verdict(ended, hello) == nullptr);
  for (int i = 3; i <= runs; ++i) {
    CAPTURE(i);
    hello.claim = Claim{{Round(10 * i - 9), "c0"}, 0, 1, RestartCount(0), NodeState::kRunning};
    REQUIRE(missed_verdict(ended, hello));
    CHECK(missed_verdict(ended, hello)->exit_code == i);
  }
  hello.claim->stamp.number = Round(10 * runs + 1);
  CHECK(missed_verdict(ended, hello) == nullptr);
}

TEST_CASE("the terms of a run hold for the first node of the coordinator after its own") {
  RunRecord record{4, 1};
  record.agreed = agreed_by_two();
  Desk desk(0, record);
  Hello other = desk.hello("x", 2, 3);
  desk.say(1, other);
  REQUIRE(desk.last<Refused>(1));
  CHECK(desk.last<Refused>(1)->code == RefusalCode::kTermsDiffer);
  CHECK_THAT(desk.last<Refused>(1)->sentence,
             ContainsSubstring("7f3a (first node gpu-01 at 10.0.0.9) has --nnodes 2:2, x has 2:3"));
  Hello member = desk.hello("a", 2, 2);
  member.claim = Claim{{Round(4), "c0"}, 0, 2, RestartCount(1), NodeState::kRunning};
  desk.say(2, member);
  CHECK(!desk.last<Refused>(2));
  CHECK(desk.run_.phase() == Phase::kRebuilding);
  CHECK(desk.run_.status(desk.now_).terms.keep_alive_interval == milliseconds(700));
}

TEST_CASE("a node of another command is told so, and nothing of the run") {
  RunRecord record{4, 1};
  record.agreed = agreed_by_two();
  record.agreed->fingerprint = "f1";
  Desk desk(0, record);
  Hello other = desk.hello("x", 2, 2);
  other.fingerprint = "f2";
  other.command = "python eval.py";
  desk.say(1, other);
  REQUIRE(desk.last<Refused>(1));
  CHECK(desk.last<Refused>(1)->code == RefusalCode::kCommandDiffers);
  CHECK_THAT(desk.last<Refused>(1)->sentence, ContainsSubstring("x" + test::kOtherCommand) &&
                                                  ContainsSubstring("use a different --rdzv-id") &&
                                                  !ContainsSubstring("gpu-01"));
}

TEST_CASE("times may be other ones when all nodes of a run were lost and are started again") {
  RunRecord record{4, 1};
  record.agreed = agreed_by_two();
  Desk desk(0, record);
  desk.join_two();
  CHECK(desk.run_.status(desk.now_).terms.keep_alive_interval == milliseconds(1000));
  CHECK(desk.last<StartRound>(1)->stamp.number == Round(5));
}

TEST_CASE("the node with a coordinator that others follow leaves like any other node") {
  Desk desk(0, RunRecord{});
  Hello first = desk.hello("a", 1, 2);
  first.runs_coordinator = true;
  desk.say(1, first);
  desk.say(2, desk.hello("b", 1, 2));
  desk.both_run();
  desk.say(1, Leave{143, "SIGTERM received", Round(1), true});
  CHECK(!desk.last<Stop>(2));
  REQUIRE(desk.last<StartRound>(2));
  CHECK(desk.last<StartRound>(2)->stamp.number == Round(2));
}
