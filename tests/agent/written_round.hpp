// A round whose shell only writes down what it is told to do.
#pragma once

#include <signal.h>

#include <array>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/node/local_round.hpp"

namespace ddprun::test {

using namespace std::chrono_literals;

inline const auto kGone = ExitStatus::signaled(SIGTERM);
inline const auto kDone = ExitStatus::exited(0);
inline const auto kFailed = ExitStatus::exited(3);

/// What the processes and files of a round are like, and what was asked of them.
struct Written {
  /// What was asked for since the last call.
  [[nodiscard]] std::string written() { return std::exchange(words_, {}); }

  TimePoint now_{1000s};
  TimePoint deadline_{};  // none: not armed
  int sent_ = -1;         // to the last worker that ended
  int signalled_ = -1;    // workers, as it was told last
  bool writes_stacks_ = false;
  bool devices_are_held_ = false;
  std::optional<LocalRank> broken_{};
  std::vector<std::string> left_{};
  WorkerExit failure_{};
  bool listens_later_ = false;  // the complaint is told by the test
  std::optional<Complaint> complaint_{};
  TimePoint hearing_until_{};
  std::array<std::optional<std::string>, 2> last_lines_{};
  std::array<local::Raised, 3> raised_{};
  int handled_ = 0;  // signal
  bool can_tell_ = true;
  std::string words_{};
};

class WrittenRound {
 public:
  WrittenRound(Written& shell, LocalRound::Options options)
      : shell_(shell), round_(std::move(options), shell.now_) {}

  void begin() { feed(local::Begin{}); }
  void request_stop(int signal) { feed(StopRequested{signal}); }
  void end(int signal, Duration grace, StopOrdered::Then then = StopOrdered::Then::kEnd,
           StopOrdered::Cause cause = StopOrdered::Cause::kRound) {
    feed(StopOrdered{signal, grace, false, then, cause});
  }
  void look() { feed(local::LookAsked{}); }
  void files_opened(Result<void> logs, Result<void> program) {
    feed(local::FilesOpened{std::move(logs), std::move(program)});
  }
  void devices_released() { feed(local::DevicesReleased{}); }
  void spawn_due(LocalRank rank) { feed(local::SpawnDue{rank}); }
  void timer_expired(TimePoint deadline) { feed(TimerExpired{deadline}); }
  void exited(LocalRank rank, ExitStatus status, LeftBehind left) {
    local::Exited exit{exit_of(rank), left, obeyed_.contains(rank)};
    exit.exit.status = status;
    feed(std::move(exit));
  }
  void complaint_found(LocalRank rank, std::optional<Complaint> complaint) {
    feed(local::ComplaintFound{rank, std::move(complaint)});
  }
  void hearing_over() { feed(local::HearingOver{}); }
  void emptied(LocalRank rank) { feed(local::Emptied{rank}); }
  void joined(LocalRank rank) { feed(local::Joined{rank}); }
  void survives(LocalRank rank, bool still = true) { feed(local::Survives{rank, still}); }
  void evidence_found(RawEvidence raw) { feed(local::EvidenceFound{std::move(raw)}); }
  void give_up(const GiveUp& order) {
    const auto rank = round_.rank_of(order);
    if (rank) feed(local::GiveUpAsked{order, exit_of(*rank)});
  }

  [[nodiscard]] RoundResult result() const {
    std::vector<LocalRound::AtEnd> ends;
    for (int i = 0; i < 3; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const int pid = 100 + i;
      ends.push_back({exit_of(LocalRank(i)).worker,
                      {},
                      shell_.raised_.at(at),
                      8,
                      shell_.left_,
                      {{pid, "python3", 'D', "nvidia_ioctl", {"/dev/nvidia2"}}}});
      if (at < shell_.last_lines_.size()) ends.back().line = shell_.last_lines_.at(at);
    }
    return round_.result(ends);
  }
  [[nodiscard]] const LocalRound& round() const { return round_; }
  [[nodiscard]] const WorkerGroup& group() const { return round_.group(); }
  [[nodiscard]] bool over() const { return round_.over(); }
  [[nodiscard]] bool is_opening() const { return round_.is_opening(); }
  [[nodiscard]] bool failure_is_unreported() const { return round_.failure_is_unreported(); }
  [[nodiscard]] std::vector<LocalRank> released() const { return round_.released(); }
  [[nodiscard]] LocalRound::Trained trained() const { return round_.trained(); }

 private:
  void feed(local::Event event) {
    events_.push_back(std::move(event));
    if (std::exchange(feeding_, true)) return;
    while (!events_.empty()) {
      const local::Event next = std::move(events_.front());
      events_.pop_front();
      for (const local::Action& action : round_.step(next, shell_.now_)) {
        std::visit([this](const auto& one) { act(one); }, action);
      }
    }
    feeding_ = false;
  }
  void answer(local::Event event) { events_.push_front(std::move(event)); }
  void write(const std::string& what) {
    shell_.words_ += (shell_.words_.empty() ? "" : ", ") + what;
  }
  void write(const std::string& what, LocalRank rank) {
    write(what + " " + std::to_string(rank.value()));
  }
  static WorkerExit exit_of(LocalRank rank) {
    WorkerExit exit;
    exit.worker = {Rank(rank.value()), rank, 100 + rank.value(), "gpu-01"};
    exit.log = "/logs/" + std::to_string(rank.value());
    return exit;
  }

  void act(const local::OpenFiles&) { write("open files"); }
  void act(const local::GiveUpFiles&) { write("give up files"); }
  void act(const local::AwaitDevices&) {
    if (!shell_.devices_are_held_) return answer(local::DevicesReleased{});
    write("wait for devices");
  }
  void act(const local::PostSpawn& action) { write("post", action.rank); }
  void act(const local::StartWorker& action) {
    write("start", action.rank);
    obeyed_.erase(action.rank);
    Result<void> started;
    if (shell_.broken_ == action.rank) started = Error(ErrorKind::kSystem, "out of processes");
    answer(local::Started{action.rank, std::move(started)});
  }
  void act(const local::TellRound& action) {
    write("tell", action.rank);
    answer(local::Told{action.rank, shell_.can_tell_});
  }
  void act(const Signal& action) {
    const bool after = round_.group().first_failure() && !round_.has_exited(action.rank);
    if (after && action.signal == shell_.handled_) obeyed_.insert(action.rank);
    write(action.spares_pipe_ends ? "kill" : signal_name(action.signal), action.rank);
  }
  void act(const local::AskStacks& action) {
    const auto ranks = shell_.writes_stacks_ ? action.ranks : std::vector<LocalRank>();
    for (const LocalRank rank : ranks) write("abort", rank);
    answer(StacksAsked{ranks});
  }
  void act(const ArmTimer& action) { shell_.deadline_ = action.deadline; }
  void act(const local::CancelTimer&) { shell_.deadline_ = {}; }
  void act(const local::LookForComplaint& action) {
    write("listen", action.rank);
    if (!shell_.listens_later_) complaint_found(action.rank, shell_.complaint_);
  }
  void act(const local::ArmHearing& action) { shell_.hearing_until_ = action.deadline; }
  void act(const local::Look&) {
    write("look at ranks");
    feed(local::Looked{std::vector<RankFacts>(2), {}});
  }
  void act(const local::ReadRaised& action) {
    local::RaisedFound found;
    for (const LocalRank rank : action.ranks) {
      found.ranks.emplace_back(rank, shell_.raised_.at(static_cast<std::size_t>(rank.value())));
    }
    feed(std::move(found));
  }
  void act(const local::CatchUp& action) { write("catch up", action.rank); }
  void act(const local::LookForEvidence& action) { write("look", action.rank); }
  void act(const local::Tell& action) {
    const client::Event& event = action.event;
    if (std::holds_alternative<client::GroupRunning>(event)) write("running");
    if (std::holds_alternative<client::GroupSucceeded>(event)) write("succeeded");
    if (const auto* before = std::get_if<client::FinishedBefore>(&event)) {
      write("finished round " + std::to_string(before->finished.value()));
    }
    if (const auto* failed = std::get_if<client::GroupFailed>(&event)) {
      write("failed", failed->first.worker.local_rank);
      shell_.failure_ = failed->first;
    }
  }
  void act(const local::TellSpawnFailed& action) { write("spawn failed", action.failure.rank); }
  void act(const local::Over&) { write("over"); }
  void act(const local::ExitTaken& action) { shell_.sent_ = action.signal; }
  void act(const local::SignalsBegin& action) { shell_.signalled_ = action.workers; }
  void act(const local::SpawnGivenUp&) {}
  void act(const local::GaveUp& action) { write("give up for " + action.order.why.code); }
  void act(const local::LogFailure& action) {
    write("log failure of " + std::to_string(action.first.worker.rank.value()) + ", others " +
          std::to_string(action.others));
  }
  void act(const local::LogStop& action) { write("log stop of " + std::to_string(action.workers)); }
  void act(const local::LogLeftBehind&) {
    if (!shell_.left_.empty()) write("log that " + shell_.left_.front() + " is left");
  }
  void act(const local::LogAgain& action) {
    write(std::to_string(action.worker.local_rank.value()) + " starts again");
  }
  void act(const local::LogRecovery& action) {
    write("recovered: " + std::to_string(action.recovery.kept) + " kept, " +
          std::to_string(action.recovery.started) + " started");
  }

  Written& shell_;
  LocalRound round_;
  std::set<LocalRank> obeyed_{};
  std::deque<local::Event> events_{};
  bool feeding_ = false;
};

/// A round of two workers, with a grace of 30 s.
struct TwoWorkers {
  Written ports;
  WrittenRound driver{ports, {Round(1), {2, 30s}, TimePoint(990s)}};

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
