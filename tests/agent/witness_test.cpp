// A worker that complains of other ranks is heard before they are stopped.
#include "agent/node/local_round.hpp"
#include "tests/agent/written_round.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::test;

namespace {

Complaint lost_peer() {
  Complaint complaint;
  complaint.kind = ComplaintKind::kLostPeer;
  return complaint;
}

}  // namespace

TEST_CASE("a witness is heard, and the others are stopped only when no culprit failed meanwhile") {
  TwoWorkers round;
  round.run();
  round.ports.complaint_ = lost_peer();
  round.exits(0, kFailed);
  CHECK(round.ports.written() == "listen 0");
  CHECK(round.ports.hearing_until_ == round.ports.now_ + kHearing);
  round.ports.now_ += kHearing;
  round.driver.hearing_over();
  CHECK(round.ports.written() ==
        "look at ranks, catch up 0, SIGTERM 1, log failure of 0, others 1, look 0");
  round.exits(1, kGone);
  round.driver.evidence_found({std::nullopt, "connection lost\n"});
  CHECK(round.ports.failure_.complaint.has_value());
  const RoundResult result = round.driver.result();
  CHECK(result.stopped == 1);
  REQUIRE(result.ranks.size() == 2);
  CHECK(result.ranks[0].end == RankEnd::kFailed);
  CHECK_FALSE(result.ranks[0].exited);  // the report is about this exit
  CHECK(result.ranks[0].complaint.has_value());
  CHECK(result.ranks[1].end == RankEnd::kRuns);
  CHECK_FALSE(result.other_failure.has_value());
}

TEST_CASE("how long before a failure another rank exited counts to its exit, not its hearing") {
  TwoWorkers round;
  round.run();
  round.exits(1, ExitStatus::exited(0));
  round.ports.now_ += 942ms;
  round.ports.complaint_ = lost_peer();
  round.exits(0, kFailed);
  round.ports.now_ += kHearing;
  round.driver.hearing_over();
  round.driver.evidence_found({std::nullopt, "connection lost\n"});
  const RoundResult result = round.driver.result();
  REQUIRE(result.ranks.size() == 2);
  CHECK(result.ranks[1].exited == 942ms);
}

TEST_CASE("a witness whose node has no other rank is heard as long as other nodes have ranks") {
  for (const auto elsewhere : {LocalRound::Elsewhere::kNoRanks, LocalRound::Elsewhere::kRanks}) {
    Written ports;
    WrittenRound driver(ports, {Round(1), {1, 30s}, TimePoint(990s), elsewhere});
    driver.begin();
    driver.files_opened({}, {});
    ports.complaint_ = lost_peer();
    driver.exited(LocalRank(0), kFailed, LeftBehind::kNothing);
    CHECK(driver.group().first_failure().has_value() ==
          (elsewhere == LocalRound::Elsewhere::kNoRanks));
    driver.hearing_over();
    CHECK(driver.group().first_failure() == LocalRank(0));
  }
}

TEST_CASE("the culprit that fails while a witness is heard is the first failure") {
  TwoWorkers round;
  round.run();
  round.ports.complaint_ = lost_peer();
  round.exits(0, kFailed);
  round.ports.complaint_.reset();
  (void)round.ports.written();
  SECTION("of a signal, which needs no look at its output") {
    round.exits(1, ExitStatus::signaled(SIGKILL));
    CHECK(round.ports.written() == "catch up 1, SIGTERM 0, log failure of 1, others 0, look 1");
    CHECK(round.driver.group().first_failure() == LocalRank(1));
    round.driver.hearing_over();
  }
  SECTION("of an error of its own") {
    round.exits(1, ExitStatus::exited(7));
    CHECK(round.ports.written() ==
          "listen 1, catch up 1, SIGTERM 0, log failure of 1, others 0, look 1");
    CHECK(round.driver.group().first_failure() == LocalRank(1));
  }
}

TEST_CASE("a witness is heard no longer when no other rank is left, or a stop comes") {
  TwoWorkers round;
  round.run();
  round.ports.complaint_ = lost_peer();
  round.exits(0, kFailed);
  (void)round.ports.written();
  SECTION("the other one succeeded") {
    round.exits(1, kDone);
    CHECK(round.ports.written() == "look at ranks, catch up 0, look 0");
    round.driver.evidence_found({});
    CHECK(round.driver.result().ranks[1].end == RankEnd::kSucceeded);
  }
  SECTION("the other one complained, too") {
    round.exits(1, kFailed);
    CHECK(round.driver.group().first_failure() == LocalRank(0));
    CHECK(round.driver.group().over());
    CHECK(round.ports.signalled_ == 1);  // who counted as running when the signal was ordered
    round.driver.hearing_over();
  }
  SECTION("a stop of the run") {
    round.driver.request_stop(SIGTERM);
    CHECK(round.driver.group().first_failure() == LocalRank(0));
    CHECK(round.driver.failure_is_unreported());
  }
  SECTION("a stop of the round") {
    round.driver.end(SIGTERM, 30s);
    CHECK(round.driver.group().first_failure() == LocalRank(0));
  }
}

TEST_CASE("a complaint that is read too late changes nothing") {
  TwoWorkers round;
  round.run();
  round.ports.listens_later_ = true;
  round.exits(0, kFailed);
  round.driver.request_stop(SIGTERM);
  round.driver.complaint_found(LocalRank(0), lost_peer());
  round.driver.hearing_over();
  CHECK(round.driver.group().first_failure() == LocalRank(0));
}

TEST_CASE("what a witness left behind may end while it is heard; it does not live") {
  TwoWorkers round;
  round.run();
  round.ports.complaint_ = lost_peer();
  round.exits(0, kFailed, LeftBehind::kProcesses);
  (void)round.ports.written();
  CHECK(round.driver.round().living() == std::vector{LocalRank(1)});
  round.driver.emptied(LocalRank(0));
  round.driver.hearing_over();
  round.exits(1, kGone);
  CHECK(round.driver.group().over());
}

TEST_CASE("a node that is to look notes what its ranks do before it stops them, and only once") {
  TwoWorkers round;
  round.run();
  round.driver.look();
  round.driver.end(SIGTERM, 30s);
  round.driver.look();
  CHECK(round.ports.written() == "look at ranks, SIGTERM 0, SIGTERM 1");
}

TEST_CASE(
    "a rank that ends in the grace of a failure that ends the run is never the one to blame") {
  Written ports;
  WorkerGroup::Options options{3, 30s};
  options.failure_grace = 1s;
  options.may_be_last = true;
  WrittenRound driver(ports, {Round(1), options, TimePoint(990s)});
  driver.begin();
  driver.files_opened({}, {});
  for (int rank = 1; rank < 3; ++rank) driver.spawn_due(LocalRank(rank));
  driver.exited(LocalRank(0), ExitStatus::signaled(SIGSEGV), LeftBehind::kNothing);
  driver.exited(LocalRank(1), kFailed, LeftBehind::kNothing);  // it has lost a peer
  CHECK(driver.group().running() == std::vector{LocalRank(2)});
  ports.now_ = ports.deadline_;
  driver.timer_expired(ports.deadline_);
  driver.exited(LocalRank(2), kGone, LeftBehind::kNothing);
  driver.evidence_found({});
  const RoundResult result = driver.result();
  CHECK(result.failure->worker.rank == Rank(0));
  REQUIRE(result.other_failure);  // it is told beside the first one
  CHECK(result.other_failure->worker.rank == Rank(1));
  CHECK(result.stopped == 1);
  CHECK(result.spared == 1s);
  CHECK(gone(Round(1), result).spared == 1s);
}

TEST_CASE("a failure in the grace after one of another node is told, as one that may follow") {
  Written ports;
  WorkerGroup::Options options{1, 30s};
  options.failure_grace = 1s;
  WrittenRound driver(ports, {Round(1), options, TimePoint(990s)});
  driver.begin();
  driver.files_opened({}, {});
  const bool had_grace = GENERATE(true, false);
  const auto cause = had_grace ? StopOrdered::Cause::kFailure : StopOrdered::Cause::kRound;
  driver.end(SIGTERM, 30s, StopOrdered::Then::kEnd, cause);
  driver.exited(LocalRank(0), kFailed, LeftBehind::kNothing);
  const RoundResult result = driver.result();
  CHECK_FALSE(result.failure);
  REQUIRE(result.other_failure.has_value() == had_grace);
  if (had_grace) CHECK(result.other_failure->in_grace);
}

TEST_CASE("a rank that had raised when it was stopped is told beside the first failure") {
  Written ports;
  WrittenRound driver(ports, {Round(1), {2, 30s}, TimePoint(990s)});
  driver.begin();
  driver.files_opened({}, {});
  driver.spawn_due(LocalRank(1));
  const bool before = GENERATE(true, false);
  if (before) ports.raised_[1] = {"ValueError: bad batch", ports.now_ - 1s};
  driver.exited(LocalRank(0), kFailed, LeftBehind::kNothing);
  ports.raised_[1] = {"SystemExit: told to stop", ports.now_};  // an answer to the signal
  driver.exited(LocalRank(1), kGone, LeftBehind::kNothing);
  driver.evidence_found({});
  const RoundResult result = driver.result();
  CHECK(result.failure->worker.rank == Rank(0));
  CHECK(result.stopped == 1);
  REQUIRE(result.other_failure.has_value() == before);
  if (!before) return;
  CHECK(result.other_failure->is_slow);
  CHECK(result.other_failure->worker.rank == Rank(1));
  CHECK(result.other_failure->lines == std::vector<std::string>{"ValueError: bad batch"});
}

TEST_CASE("a failure that was heard when the verdict came leaves the others the failure grace") {
  Written ports;
  WorkerGroup::Options options{2, 30s};
  options.failure_grace = 1s;
  WrittenRound driver(ports, {Round(1), options, TimePoint(990s)});
  driver.begin();
  driver.files_opened({}, {});
  driver.spawn_due(LocalRank(1));
  ports.complaint_ = lost_peer();
  driver.exited(LocalRank(0), kFailed, LeftBehind::kNothing);
  (void)ports.written();
  driver.end(SIGTERM, 30s, StopOrdered::Then::kEnd, StopOrdered::Cause::kFailure);
  CHECK(driver.group().first_failure() == LocalRank(0));
  CHECK_THAT(ports.written(), !ContainsSubstring("SIGTERM"));
  CHECK(driver.group().spared_until() == ports.now_ + 1s);
}
