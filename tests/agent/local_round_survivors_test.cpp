// The order of events in a round whose workers survive a change of it.
#include "base/limits.hpp"
#include "tests/agent/written_round.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::test;

namespace {

constexpr auto kNext = StopOrdered::Then::kNextRound;

/// A round of two workers that may be kept; these run since an earlier round.
struct Kept {
  Written ports;
  WrittenRound driver;

  explicit Kept(const std::vector<LocalRank>& carried = {}, Duration rejoin_timeout = 60s)
      : driver(ports, {Round(2),
                       {2, 30s, 10s, rejoin_timeout, carried},
                       TimePoint(990s),
                       LocalRound::Elsewhere::kNoRanks,
                       Round(1)}) {}
  void run() {
    driver.begin();
    driver.files_opened({}, {});
    driver.spawn_due(LocalRank(1));
    (void)ports.written();
  }
  void exits(int rank, ExitStatus status) {
    driver.exited(LocalRank(rank), status, LeftBehind::kNothing);
  }
};

const auto kKill = ExitStatus::signaled(SIGKILL);

}  // namespace

TEST_CASE("a worker that survives is kept for the next round, and one that does not is stopped") {
  Kept round;
  round.run();
  round.driver.survives(LocalRank(0));
  round.exits(1, kKill);
  CHECK(round.ports.written() == "catch up 1, log failure of 1, others 0, look 1");
  round.driver.end(SIGTERM, 30s, kNext);
  CHECK_FALSE(round.driver.over());  // the failure is to be told first
  round.driver.evidence_found({});
  CHECK(round.ports.written() == "failed 1, over");
  CHECK(round.driver.released() == std::vector{LocalRank(0)});
  const RoundResult result = round.driver.result();
  CHECK(result.state == GroupState::kFailed);
  CHECK(result.stopped == 0);
  CHECK(result.unkillable.empty());
}

TEST_CASE("a stop that comes before the next round has taken them ends those that were released") {
  Kept round;
  round.run();
  round.driver.survives(LocalRank(0));
  round.driver.survives(LocalRank(1));
  round.driver.end(SIGTERM, 30s, kNext);
  CHECK(round.ports.written() == "over");
  round.driver.end(SIGTERM, 30s);
  CHECK_FALSE(round.driver.over());
  CHECK(round.driver.released().empty());
  CHECK(round.ports.written() == "SIGTERM 0, SIGTERM 1");
  round.exits(0, kGone);
  round.exits(1, kGone);
  CHECK(round.ports.written() == "over");
  CHECK(round.driver.result().stopped == 2);
}

TEST_CASE("a round tells carried workers of it once its files are there, and starts the others") {
  Kept round({LocalRank(1)});
  round.driver.begin();
  CHECK(round.ports.written() == "open files");
  round.driver.files_opened({}, {});
  CHECK(round.ports.written() == "tell 1, post 0");
  round.driver.spawn_due(LocalRank(0));
  CHECK(round.ports.written() == "start 0, running");
  round.driver.joined(LocalRank(1));
  CHECK(round.ports.written() == "recovered: 1 kept, 1 started");
}

TEST_CASE("a round of carried workers alone tells them, and starts none") {
  Kept round({LocalRank(0), LocalRank(1)});
  round.run();
  round.driver.joined(LocalRank(1));
  round.driver.joined(LocalRank(0));
  CHECK(round.ports.written() == "recovered: 2 kept, 0 started");
}

TEST_CASE("a carried worker that ends before it has joined is started again, and not blamed") {
  Kept round({LocalRank(0), LocalRank(1)});
  round.run();
  round.driver.joined(LocalRank(0));
  round.exits(1, kFailed);
  CHECK(round.ports.written() == "1 starts again, post 1");
  round.driver.spawn_due(LocalRank(1));
  CHECK(round.ports.written() == "start 1, recovered: 1 kept, 1 started");
  CHECK_FALSE(round.driver.round().has_exited(LocalRank(1)));
  round.exits(0, kDone);
  round.exits(1, kDone);
  CHECK(round.ports.written() == "succeeded, over");
  CHECK(round.driver.result().alike == 0);
}

TEST_CASE("no worker is started beside what a carried one left behind while files were opened") {
  Kept round({LocalRank(0)});
  round.driver.begin();
  round.driver.exited(LocalRank(0), kKill, LeftBehind::kProcesses);
  (void)round.ports.written();
  round.driver.files_opened({}, {});
  CHECK(round.ports.written() == "post 1");
  round.driver.spawn_due(LocalRank(1));
  CHECK(round.ports.written() == "start 1, running");
  round.driver.emptied(LocalRank(0));
  CHECK(round.ports.written() == "post 0");
  round.driver.spawn_due(LocalRank(0));
  CHECK(round.ports.written() == "start 0, recovered: 0 kept, 2 started");
}

TEST_CASE("a stop while files are opened ends carried workers, and starts nothing") {
  Kept round({LocalRank(0)});
  round.driver.begin();
  (void)round.ports.written();
  SECTION("of the run") {
    round.driver.request_stop(SIGINT);
    CHECK(round.ports.written() == "SIGINT 0, log stop of 1, give up files");
  }
  SECTION("of the round") {
    round.driver.end(SIGINT, 30s);
    CHECK(round.ports.written() == "SIGINT 0, give up files");
  }
  CHECK_FALSE(round.driver.is_opening());
  round.exits(0, ExitStatus::signaled(SIGINT));
  CHECK(round.ports.written() == "over");
}

TEST_CASE("a round that gives way before its files are there hands carried workers on") {
  Kept round({LocalRank(0)});
  round.driver.begin();
  (void)round.ports.written();
  round.driver.end(SIGTERM, 30s, kNext);
  CHECK(round.ports.written() == "over, give up files");
  CHECK(round.driver.released() == std::vector{LocalRank(0)});
  CHECK_FALSE(round.driver.is_opening());
}

TEST_CASE("an order to tell a worker that has been held again meanwhile is void") {
  Kept round({LocalRank(0), LocalRank(1)});
  round.driver.begin();
  round.driver.files_opened({}, {});
  CHECK(round.ports.written() == "open files, tell 0, post 1");
  round.driver.end(SIGTERM, 30s, kNext);
  CHECK(round.ports.written() == "over");
  round.driver.spawn_due(LocalRank(1));
  CHECK(round.ports.written() == "");
  CHECK(round.driver.released().size() == 2);
}

TEST_CASE("workers that are held live, for signals that end nothing, too") {
  Kept round;
  round.run();
  round.driver.survives(LocalRank(0));
  round.exits(1, kKill);
  (void)round.ports.written();
  CHECK(round.driver.round().living() == std::vector{LocalRank(0)});
}

TEST_CASE("files that cannot be made end a round with carried workers like one without") {
  Kept round({LocalRank(0)});
  round.driver.begin();
  (void)round.ports.written();
  round.driver.files_opened(Error(ErrorKind::kSystem, "disk full"), {});
  CHECK(round.ports.written() == "SIGTERM 0, spawn failed 0");
}

TEST_CASE("a worker whose link has ended does not survive any more") {
  Kept round({LocalRank(0), LocalRank(1)});
  round.run();
  round.driver.joined(LocalRank(0));
  round.driver.joined(LocalRank(1));
  (void)round.ports.written();
  round.driver.survives(LocalRank(0), false);
  round.driver.end(SIGTERM, 30s, kNext);
  CHECK(round.ports.written() == "SIGTERM 0");
}

TEST_CASE("a worker that cannot be told of a round has a moment to end, and is not blamed") {
  Kept round({LocalRank(0), LocalRank(1)});
  round.ports.can_tell_ = false;
  round.driver.begin();
  round.driver.files_opened({}, {});
  CHECK(round.ports.written() == "open files, tell 0, post 1");
  round.ports.can_tell_ = true;
  round.driver.spawn_due(LocalRank(1));
  CHECK(round.ports.written() == "tell 1, running");
  CHECK(round.ports.deadline_ == round.ports.now_ + kUntoldMax);
  SECTION("it ends with 0: it has finished its round") {
    round.exits(0, kDone);
    round.exits(1, kDone);
    CHECK(round.ports.written() ==
          "0 starts again, post 0, 1 starts again, finished round 1, post 1");
  }
  SECTION("it does not: it is killed and started again, and the other has its whole time") {
    round.ports.now_ = round.ports.deadline_;
    round.driver.timer_expired(round.ports.deadline_);
    CHECK(round.ports.written() == "SIGKILL 0");
    CHECK(round.ports.signalled_ == 1);
    CHECK(round.ports.deadline_ == round.ports.now_ + kWaitAfterKill);
    round.exits(0, kKill);
    CHECK(round.ports.written() == "0 starts again, post 0");
    CHECK(round.ports.sent_ == SIGKILL);
    round.ports.now_ = round.ports.deadline_;
    round.driver.timer_expired(round.ports.deadline_);
    CHECK(round.ports.written() == "");
    CHECK(round.ports.deadline_ == round.ports.now_ + 48s);
  }
  SECTION("it fails by itself: the other has its whole time, and is then killed") {
    round.exits(0, ExitStatus::exited(1));
    CHECK(round.ports.written() == "0 starts again, post 0");
    CHECK(round.ports.sent_ == 0);
    round.ports.now_ = round.ports.deadline_;
    round.driver.timer_expired(round.ports.deadline_);
    CHECK(round.ports.written() == "");
    CHECK(round.ports.deadline_ == round.ports.now_ + 58s);
    round.ports.now_ = round.ports.deadline_;
    round.driver.timer_expired(round.ports.deadline_);
    CHECK(round.ports.written() == "SIGKILL 1");
  }
  SECTION("it leaves a process, which does not end the round before its time either") {
    round.driver.exited(LocalRank(0), ExitStatus::exited(1), LeftBehind::kProcesses);
    (void)round.ports.written();
    round.ports.now_ = round.ports.deadline_;
    round.driver.timer_expired(round.ports.deadline_);
    CHECK(round.ports.written() == "");
    CHECK(round.ports.deadline_ == round.ports.now_ + 58s);
  }
}

TEST_CASE("a short time to rejoin is that of the others, also where one could not be told") {
  Kept round({LocalRank(0), LocalRank(1)}, 3s);
  round.ports.can_tell_ = false;
  round.driver.begin();
  round.driver.files_opened({}, {});
  round.ports.can_tell_ = true;
  round.driver.spawn_due(LocalRank(1));
  (void)round.ports.written();
  round.ports.now_ = round.ports.deadline_;
  round.driver.timer_expired(round.ports.deadline_);
  CHECK(round.ports.written() == "SIGKILL 0");
  CHECK(round.ports.deadline_ == round.ports.now_ + 1s);
  round.ports.now_ = round.ports.deadline_;
  round.driver.timer_expired(round.ports.deadline_);
  CHECK(round.ports.written() == "SIGKILL 1");
}

TEST_CASE("a worker that ends with 0 while it is held, and had not taken the round, has finished") {
  Kept round({LocalRank(0), LocalRank(1)});
  round.run();
  round.exits(0, kDone);  // it is started again, which takes a while to stop
  round.driver.spawn_due(LocalRank(0));
  round.driver.end(SIGTERM, 30s, kNext);
  round.exits(1, kDone);
  CHECK(round.driver.trained().round == Round(1));
  CHECK(round.driver.trained().finished == std::vector{LocalRank(0), LocalRank(1)});
}

TEST_CASE("a worker that ends with 0 while it is held has finished its round") {
  Kept round;
  round.run();
  round.driver.survives(LocalRank(0));
  round.driver.survives(LocalRank(1));
  round.driver.end(SIGTERM, 30s, kNext);
  round.exits(1, kDone);
  CHECK(round.driver.trained().round == Round(2));
  CHECK(round.driver.trained().finished == std::vector{LocalRank(1)});
  CHECK(round.driver.released() == std::vector{LocalRank(0)});
}

TEST_CASE("workers that all end with 0 instead of taking a round have finished the one before") {
  Kept round({LocalRank(0), LocalRank(1)});
  round.run();
  round.exits(0, kDone);
  CHECK(round.ports.written() == "0 starts again, post 0");
  round.exits(1, kDone);
  CHECK(round.ports.written() == "1 starts again, finished round 1, post 1");
}

TEST_CASE("no round before is finished if a worker took the new one, failed, or was killed") {
  Kept round({LocalRank(0), LocalRank(1)});
  round.run();
  SECTION("took it") {
    round.driver.joined(LocalRank(0));
    CHECK(round.driver.trained().round == Round(0));
  }
  SECTION("failed") {
    round.exits(0, kKill);
  }
  SECTION("was killed, and ended with 0") {
    round.driver.timer_expired(round.ports.deadline_);
    round.exits(0, kDone);
  }
  round.exits(1, kDone);
  CHECK_THAT(round.ports.written(), !ContainsSubstring("finished round"));
}

TEST_CASE("workers that finished are remembered while the others have taken no newer round") {
  Kept round({LocalRank(0), LocalRank(1)});
  round.run();
  round.exits(0, kDone);
  round.driver.end(SIGTERM, 30s, kNext);
  CHECK(round.driver.trained().round == Round(1));
  CHECK(round.driver.trained().finished == std::vector{LocalRank(0)});
}
