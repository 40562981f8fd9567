// A round on ports that only write down what they are asked to do.
#pragma once

#include <signal.h>
#include <array>

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/node/round_driver.hpp"

namespace ddprun::test {

using namespace std::chrono_literals;

inline const auto kGone = ExitStatus::signaled(SIGTERM);
inline const auto kDone = ExitStatus::exited(0);
inline const auto kFailed = ExitStatus::exited(3);

class WrittenPorts final : public RoundPorts {
 public:
  /// What was asked for since the last call.
  [[nodiscard]] std::string written() { return std::exchange(words_, {}); }

  [[nodiscard]] TimePoint now() const override { return now_; }
  void open_files() override { write("open files"); }
  void give_up_files() override { write("give up files"); }
  [[nodiscard]] bool await_devices() override {
    if (devices_are_held_) write("wait for devices");
    return devices_are_held_;
  }
  void post_spawn(LocalRank rank) override { write("post", rank); }
  [[nodiscard]] Result<void> start_worker(LocalRank rank) override {
    write("start", rank);
    if (broken_ == rank) return Error(ErrorKind::kSystem, "out of processes");
    return {};
  }
  [[nodiscard]] bool survives(LocalRank rank) const override { return survivors_.count(rank) != 0; }
  [[nodiscard]] bool tell_round(LocalRank rank) override {
    write("tell", rank);
    return can_tell_;
  }
  void log_again(const WorkerName& worker, const ExitStatus&) override {
    write(std::to_string(worker.local_rank.value()) + " starts again");
  }
  void recovered(const Recovery& recovery) override {
    write("recovered: " + std::to_string(recovery.kept) + " kept, " +
          std::to_string(recovery.started) + " started");
  }
  void signal_group(LocalRank rank, int signal) override { write(signal_name(signal), rank); }
  void kill_but_pipe_ends(LocalRank rank) override { write("kill", rank); }
  [[nodiscard]] Answer answer_to(LocalRank rank, int) const override {
    return answers_.at(static_cast<std::size_t>(rank.value()));
  }
  [[nodiscard]] std::vector<LocalRank> abort_with_stacks(
      const std::vector<LocalRank>& ranks) override {
    if (!writes_stacks_) return {};
    for (const LocalRank rank : ranks) write("abort", rank);
    return ranks;
  }
  [[nodiscard]] bool may_handle(LocalRank, int signal) const override { return signal == handled_; }
  void signal_worker(LocalRank rank, int) override { write("pass on", rank); }
  void arm_timer(TimePoint deadline) override { deadline_ = deadline; }
  void cancel_timer() override { deadline_ = {}; }
  [[nodiscard]] WorkerName name_of(LocalRank rank) const override {
    return {Rank(rank.value()), rank, 100 + rank.value(), "gpu-01"};
  }
  [[nodiscard]] WorkerExit describe_exit(LocalRank rank) const override {
    WorkerExit exit;
    exit.worker = name_of(rank);
    exit.log = "/logs/" + std::to_string(rank.value());
    return exit;
  }
  [[nodiscard]] std::vector<std::string> left_behind(LocalRank) const override { return left_; }
  void look_for_complaint(LocalRank rank, const ExitStatus& /*status*/) override {
    write("listen", rank);
    if (!listens_later_) driver_->complaint_found(rank, complaint_);
  }
  void arm_hearing(TimePoint deadline) override { hearing_until_ = deadline; }
  [[nodiscard]] std::vector<RankFacts> look_at_ranks() override {
    write("look at ranks");
    return std::vector<RankFacts>(2);
  }
  [[nodiscard]] std::optional<std::string> last_line(LocalRank rank) const override {
    return last_lines_.at(static_cast<std::size_t>(rank.value()));
  }
  [[nodiscard]] Raised raised(LocalRank rank) override {
    return raised_.at(static_cast<std::size_t>(rank.value()));
  }
  [[nodiscard]] std::vector<StuckProcess> stuck(LocalRank rank) const override {
    return {{100 + rank.value(), "python3", 'D', "nvidia_ioctl", {"/dev/nvidia2"}}};
  }
  [[nodiscard]] int descendants_ended(LocalRank) const override { return 8; }
  void catch_up(LocalRank rank) override { write("catch up", rank); }
  void look_for_evidence(LocalRank rank) override { write("look", rank); }
  void gave_up(const GiveUp& order) override { write("give up for " + order.why.code); }
  void log_failure(const WorkerExit& first, int others) override {
    write("log failure of " + std::to_string(first.worker.rank.value()) + ", others " +
          std::to_string(others));
  }
  void log_stop(int, int workers) override { write("log stop of " + std::to_string(workers)); }
  void log_left_behind(const LeftBehindFacts& facts) override {
    write("log that " + facts.names.front() + " is left");
  }
  void tell(client::Event event) override {
    if (std::holds_alternative<client::GroupRunning>(event)) write("running");
    if (std::holds_alternative<client::GroupSucceeded>(event)) write("succeeded");
    if (const auto* before = std::get_if<client::FinishedBefore>(&event)) {
      write("finished round " + std::to_string(before->finished.value()));
    }
    if (const auto* failed = std::get_if<client::GroupFailed>(&event)) {
      write("failed", failed->first.worker.local_rank);
      failure_ = failed->first;
    }
  }
  void spawn_failed(const SpawnFailed& failure) override { write("spawn failed", failure.rank); }
  void round_over() override { write("over"); }

  TimePoint now_{1000s};
  TimePoint deadline_{};  // none: not armed
  bool writes_stacks_ = false;
  std::array<Answer, 4> answers_{};
  bool devices_are_held_ = false;
  std::optional<LocalRank> broken_;
  std::vector<std::string> left_;
  WorkerExit failure_;
  RoundDriver* driver_ = nullptr;
  bool listens_later_ = false;  // complaint_found() is called by the test
  std::optional<Complaint> complaint_{};
  TimePoint hearing_until_{};
  std::array<std::optional<std::string>, 2> last_lines_{};
  std::array<Raised, 3> raised_{};
  int handled_ = 0;  // signal
  std::set<LocalRank> survivors_{};
  bool can_tell_ = true;

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
  RoundDriver driver{ports, Round(1), {2, 30s}, TimePoint(990s)};

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

}  // namespace ddprun::test
