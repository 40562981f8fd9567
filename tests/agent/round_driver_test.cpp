// The order of events in one round, on ports that only write down what they are asked to do.
#include "agent/node/round_driver.hpp"

#include <signal.h>

#include <utility>

#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace std::chrono_literals;

namespace {

const auto kGone = ExitStatus::signaled(SIGTERM);
const auto kDone = ExitStatus::exited(0);
const auto kFailed = ExitStatus::exited(3);

class WrittenPorts final : public RoundPorts {
 public:
  /// What was asked for since the last call.
  [[nodiscard]] std::string written() { return std::exchange(words_, {}); }

  [[nodiscard]] TimePoint now() const override { return now_; }
  void open_files() override { write("open files"); }
  void give_up_files() override { write("give up files"); }
  void post_spawn(LocalRank rank) override { write("post", rank); }
  [[nodiscard]] Result<void> start_worker(LocalRank rank) override {
    write("start", rank);
    if (broken_ == rank) return Error(ErrorKind::kSystem, "out of processes");
    return {};
  }
  void signal_group(LocalRank rank, int signal) override { write(signal_name(signal), rank); }
  void signal_worker(LocalRank rank, int) override { write("pass on", rank); }
  void arm_timer(TimePoint deadline) override { deadline_ = deadline; }
  void cancel_timer() override { deadline_ = {}; }
  [[nodiscard]] WorkerName name_of(LocalRank rank) const override {
    return {Rank(rank.value()), rank, 100 + rank.value(), "gpu-01"};
  }
  [[nodiscard]] WorkerExit describe_exit(LocalRank rank) const override {
    WorkerExit exit;
    exit.worker = name_of(rank);
    return exit;
  }
  [[nodiscard]] std::vector<std::string> left_behind(LocalRank) const override { return left_; }
  void look_for_complaint(LocalRank rank) override {
    write("listen", rank);
    if (!listens_later_) driver_->complaint_found(rank, complaint_);
  }
  void arm_hearing(TimePoint deadline) override { hearing_until_ = deadline; }
  [[nodiscard]] std::vector<RankFacts> look_at_ranks() override {
    write("look at ranks");
    return std::vector<RankFacts>(2);
  }
  [[nodiscard]] std::vector<StuckProcess> stuck(LocalRank rank) const override {
    return {{100 + rank.value(), "python3", 'D', "nvidia_ioctl", {"/dev/nvidia2"}}};
  }
  [[nodiscard]] int descendants_ended(LocalRank) const override { return 8; }
  void catch_up(LocalRank rank) override { write("catch up", rank); }
  void look_for_evidence(LocalRank rank) override { write("look", rank); }
  void log_failure(const WorkerExit& first, int others) override {
    write("log failure of " + std::to_string(first.worker.rank.value()) + ", others " +
          std::to_string(others));
  }
  void log_stop(int, int workers) override { write("log stop of " + std::to_string(workers)); }
  void log_left_behind(const LeftBehindFacts& facts) override {
    write("log that " + facts.names.front() + " is left");
  }
  void running() override { write("running"); }
  void succeeded() override { write("succeeded"); }
  void failed(const WorkerExit& first) override {
    write("failed", first.worker.local_rank);
    failure_ = first;
  }
  void spawn_failed(const SpawnFailed& failure) override { write("spawn failed", failure.rank); }
  void round_over() override { write("over"); }

  TimePoint now_{1000s};
  TimePoint deadline_{};  // none: not armed
  std::optional<LocalRank> broken_;
  std::vector<std::string> left_;
  WorkerExit failure_;
  RoundDriver* driver_ = nullptr;
  bool listens_later_ = false;  // complaint_found() is called by the test
  std::optional<Complaint> complaint_{};
  TimePoint hearing_until_{};

 private:
  void write(const std::string& what) { words_ += (words_.empty() ? "" : ", ") + what; }
  void write(const std::string& what, LocalRank rank) {
    write(what + " " + std::to_string(rank.value()));
  }

  std::string words_;
};

/// A round of two workers, with a grace of 30 s.
struct TwoWorkers {
  WrittenPorts ports;
  RoundDriver driver{ports, {2, 30s}, TimePoint(990s)};

  TwoWorkers() { ports.driver_ = &driver; }

  /// Both run.
  void run() {
    driver.begin();
    driver.files_opened({}, {});
    driver.spawn_due(LocalRank(1));
    (void)ports.written();
  }
  /// The first runs, the second is about to be started.
  void run_first() {
    driver.begin();
    driver.files_opened({}, {});
    (void)ports.written();
  }
  void exits(int rank, ExitStatus status, LeftBehind left = LeftBehind::kNothing) {
    driver.exited(LocalRank(rank), status, left);
  }
};

}  // namespace

TEST_CASE("a round makes its files, then starts one worker after the other") {
  TwoWorkers round;
  round.driver.begin();
  CHECK(round.ports.written() == "open files");
  round.driver.files_opened({}, {});
  CHECK(round.ports.written() == "start 0, post 1");
  round.driver.spawn_due(LocalRank(1));
  CHECK(round.ports.written() == "start 1, running");
  round.exits(1, kDone);
  round.exits(0, kDone);
  CHECK(round.ports.written() == "succeeded, over");
  CHECK(round.driver.result().state == GroupState::kSucceeded);
}

TEST_CASE("a stop before a round began starts nothing") {
  TwoWorkers round;
  round.driver.request_stop(SIGTERM);
  CHECK(round.ports.written() == "over");
  round.driver.begin();
  CHECK(round.ports.written() == "");
  CHECK(round.driver.result().state == GroupState::kStopped);
}

TEST_CASE("a stop waits neither for the log directory nor for the program") {
  TwoWorkers round;
  round.driver.begin();
  (void)round.ports.written();
  SECTION("of the run") {
    round.driver.request_stop(SIGTERM);
    CHECK(round.ports.written() == "log stop of 0, give up files, over");
  }
  SECTION("of the round") {
    round.driver.end(SIGTERM, 30s);
    CHECK(round.ports.written() == "give up files, over");
  }
  CHECK(round.driver.over());
  CHECK(round.driver.result().state == GroupState::kStopped);
}

TEST_CASE("a worker that was about to be started when a stop came is not started") {
  TwoWorkers round;
  round.run_first();
  SECTION("a stop of the run") {
    round.driver.request_stop(SIGINT);
  }
  SECTION("a stop of the round") {
    round.driver.end(SIGINT, 30s);
  }
  (void)round.ports.written();
  round.driver.spawn_due(LocalRank(1));
  CHECK(round.ports.written() == "");
  round.exits(0, ExitStatus::signaled(SIGINT));
  CHECK(round.ports.written() == "over");
  CHECK(round.driver.result().stopped == 1);
}

TEST_CASE("ranks that are given up are stopped like after a failure, whose reason is told") {
  TwoWorkers round;
  round.run();
  const Finding hang{"HANG", "no rank has written", {1}, {}, "", ""};
  round.driver.give_up({LocalRank(1), 114, hang, "/logs/stacks-1s.txt"});
  CHECK(round.ports.written() == "SIGTERM 0, SIGTERM 1, log failure of 1, others 2, failed 1");
  CHECK(round.ports.failure_.status == ExitStatus::exited(114));
  CHECK(round.ports.failure_.given_up == hang);
  CHECK(round.ports.failure_.log == "/logs/stacks-1s.txt");
  CHECK(round.ports.failure_.since_start == 10s);
  round.exits(1, kGone);
  round.exits(0, kFailed);
  CHECK(round.ports.written() == "over");
  CHECK(round.driver.result().failure == round.ports.failure_);
  CHECK(round.driver.result().stopped == 2);
}

TEST_CASE("what happened while stacks were read comes before what they are read for") {
  TwoWorkers round;
  round.run();
  const GiveUp hang{LocalRank(0), 114, {"HANG", "", {}, {}, "", ""}, ""};
  SECTION("a failure") {
    round.exits(0, kFailed);
    (void)round.ports.written();
    round.driver.give_up(hang);
    CHECK(round.ports.written() == "");
  }
  SECTION("a success of the rank in question") {
    round.exits(0, kDone);
    round.driver.give_up(hang);
    CHECK(round.ports.failure_.worker.local_rank == LocalRank(1));
  }
  SECTION("a success of all") {
    round.exits(0, kDone);
    round.exits(1, kDone);
    (void)round.ports.written();
    round.driver.give_up(hang);
    CHECK(round.ports.written() == "");
  }
}

TEST_CASE("a worker that was about to be started when another failed is not started") {
  TwoWorkers round;
  round.run_first();
  round.exits(0, kFailed);
  CHECK(round.ports.written() == "listen 0, catch up 0, log failure of 0, others 0, look 0");
  round.driver.evidence_found({});
  round.driver.spawn_due(LocalRank(1));
  CHECK(round.ports.written() == "failed 0, over");
}

TEST_CASE("when rank k cannot be spawned those below are stopped, and the owner learns why") {
  TwoWorkers round;
  round.ports.broken_ = LocalRank(1);
  round.run_first();
  round.driver.spawn_due(LocalRank(1));
  CHECK(round.ports.written() == "start 1, SIGTERM 0, spawn failed 1");
  round.exits(0, kGone);
  CHECK(round.ports.written() == "over");
  CHECK(round.driver.result().state == GroupState::kFailed);
}

TEST_CASE("log files or a program that are not there are a failed spawn of the first worker") {
  const Error error(ErrorKind::kSystem, "no space left on device");
  TwoWorkers round;
  round.driver.begin();
  (void)round.ports.written();
  SECTION("log files") {
    round.driver.files_opened(error, {});
  }
  SECTION("program") {
    round.driver.files_opened({}, error);
  }
  CHECK(round.ports.written() == "over, spawn failed 0");
}

TEST_CASE("the others are stopped before the files of the worker that failed are read") {
  TwoWorkers round;
  round.run();
  round.exits(1, kFailed);
  CHECK(round.ports.written() ==
        "listen 1, catch up 1, SIGTERM 0, log failure of 1, others 1, look 1");
}

TEST_CASE("a round is over only when its failure was told with its evidence") {
  TwoWorkers round;
  round.run();
  round.exits(0, kDone);
  round.exits(1, kFailed);
  (void)round.ports.written();
  CHECK(round.driver.group().over());
  CHECK_FALSE(round.driver.over());
  CHECK(round.driver.failure_is_unreported());
  round.driver.evidence_found({std::nullopt, "CUDA out of memory"});
  CHECK(round.ports.written() == "failed 1, over");
  CHECK(round.ports.failure_.lines == std::vector<std::string>{"CUDA out of memory"});
  CHECK(round.driver.over());
}

TEST_CASE("a stop while the evidence of a failure is read leaves the failure first") {
  TwoWorkers round;
  round.run();
  round.exits(1, kFailed);
  round.driver.request_stop(SIGTERM);
  round.exits(0, kGone);
  (void)round.ports.written();
  round.driver.evidence_found({});
  CHECK(round.ports.written() == "failed 1, over");
  const RoundResult result = round.driver.result();
  CHECK(result.state == GroupState::kFailed);
  CHECK(result.failure->worker.rank == Rank(1));
}

TEST_CASE("SIGKILL follows at the end of the grace, and what survives it is named") {
  TwoWorkers round;
  round.run();
  round.driver.end(SIGTERM, 5s);
  CHECK(round.ports.written() == "SIGTERM 0, SIGTERM 1");
  CHECK(round.ports.deadline_ == round.ports.now_ + 5s);
  round.exits(0, kGone);
  round.ports.now_ = round.ports.deadline_;
  round.driver.timer_expired(round.ports.deadline_);
  CHECK(round.ports.written() == "SIGKILL 1");
  round.ports.now_ = round.ports.deadline_;
  round.driver.timer_expired(round.ports.deadline_);
  CHECK(round.ports.written() == "over");
  CHECK(round.ports.deadline_ == TimePoint());
  const RoundResult result = round.driver.result();
  REQUIRE(result.unkillable.size() == 1);
  CHECK(result.unkillable.front().worker.rank == Rank(1));
  REQUIRE(result.unkillable.front().processes.size() == 1);
  CHECK(result.unkillable.front().processes.front().pid == 101);
  CHECK(result.descendants == 8);  // of the worker that has ended
  CHECK(result.stopped == 1);
  CHECK(result.killed == 0);
  CHECK(outcome_of(result).unkillable == "rank 1 (local 1, pid 101) on gpu-01");
  round.exits(1, ExitStatus::signaled(SIGKILL));  // after all
  CHECK(round.ports.written() == "");
}

TEST_CASE("what a worker left behind is told, unless it is gone by now") {
  TwoWorkers round;
  round.run();
  round.exits(0, kDone);
  round.exits(1, kDone, LeftBehind::kProcesses);
  CHECK(round.ports.written() == "succeeded");
  SECTION("it lives") {
    round.ports.left_ = {"python3"};
    round.driver.timer_expired(round.ports.deadline_);
    CHECK(round.ports.written() == "log that python3 is left");
  }
  SECTION("it is gone") {
    round.driver.timer_expired(round.ports.deadline_);
    CHECK(round.ports.written() == "");
  }
  round.driver.emptied(LocalRank(1));
  CHECK(round.ports.written() == "over");
}

TEST_CASE("an exit says when it was and which signal was passed on before") {
  TwoWorkers round;
  round.run();
  round.driver.pass_on(SIGUSR1);
  CHECK(round.ports.written() == "pass on 0, pass on 1");
  round.ports.now_ += 7s;
  round.exits(0, kFailed);
  round.driver.evidence_found({});
  CHECK(round.ports.failure_.passed_signal == SIGUSR1);
  CHECK(round.ports.failure_.after == 7s);
  CHECK(round.ports.failure_.since_start == 17s);
}

TEST_CASE("a failure that had no line has one in the outcome, a success has no outcome") {
  TwoWorkers logged;
  logged.run();
  logged.exits(1, kFailed);
  logged.exits(0, kGone);
  logged.driver.evidence_found({});
  CHECK(outcome_of(logged.driver.result()).death_line.empty());
  CHECK(outcome_of(logged.driver.result()).stopped == 1);
  TwoWorkers last;
  last.run();
  last.exits(0, kDone);
  last.exits(1, kFailed);
  last.driver.evidence_found({});
  CHECK_FALSE(outcome_of(last.driver.result()).death_line.empty());
  TwoWorkers done;
  done.run();
  done.exits(0, kDone);
  done.exits(1, kDone);
  CHECK(outcome_of(done.driver.result()).death_line.empty());
}

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
  round.driver.evidence_found({});
  CHECK(round.ports.failure_.complaint.has_value());
  const RoundResult result = round.driver.result();
  CHECK(result.stopped == 1);
  REQUIRE(result.ranks.size() == 2);
  CHECK(result.ranks[0].end == RankEnd::kFailed);
  CHECK(result.ranks[0].exited == 500ms);
  CHECK(result.ranks[0].complaint.has_value());
  CHECK(result.ranks[1].end == RankEnd::kRuns);
  CHECK_FALSE(result.other_failure.has_value());
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

TEST_CASE("what a witness left behind may end while it is heard; no signal is passed on to it") {
  TwoWorkers round;
  round.run();
  round.ports.complaint_ = lost_peer();
  round.exits(0, kFailed, LeftBehind::kProcesses);
  (void)round.ports.written();
  round.driver.pass_on(SIGUSR1);
  CHECK(round.ports.written() == "pass on 1");
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
