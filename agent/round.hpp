// RoundRunner: the shell around one WorkerGroup. It spawns, watches, signals and times as the group
// says, and gathers the evidence of every exit. It decides nothing. Thread rule: the io_context's
// thread. Ownership: shared, because the watch on a worker that nothing ends continues after the
// round is over.
#pragma once

#include <sys/resource.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "agent/core/lines.hpp"
#include "agent/core/plan.hpp"
#include "agent/core/report.hpp"
#include "agent/core/worker_group.hpp"
#include "agent/output_plan.hpp"
#include "agent/proc/child.hpp"
#include "agent/proc/console.hpp"
#include "agent/proc/orphans.hpp"
#include "agent/proc/output.hpp"
#include "agent/wait_note.hpp"
#include "base/worker_exit.hpp"

namespace spdlog {
class logger;
}

namespace ddprun {

/// Called while the round runs; any may be empty.
struct RoundHooks {
  std::function<void()> opened;   // the log files are there, no worker was started yet
  std::function<void()> running;  // all workers were started
  /// All workers exited with 0. What they left in their process groups may still run.
  std::function<void()> succeeded;
  /// The first failure, as soon as it is learned. The workers it drags along still run.
  std::function<void(const WorkerExit& first)> failed;
  std::function<void(const SpawnFailed& failure)> spawn_failed;
};

/// What a round is run with; config, environment and logger outlive it.
struct RoundInputs {
  const LaunchConfig& config;
  const Environment& environment;
  spdlog::logger& logger;
  RoundFacts facts;
  std::function<Result<OutputContext>()> open_output;  // may block: runs on `disk`
  std::string log_place;                               // where that makes its files
  DiskThread disk;
  std::string hostname;
  Consoles consoles;
  TimePoint run_started;
  std::optional<rlimit> descriptor_limit;  // of a worker; none: that of this process
  Orphans& orphans;
  RoundHooks hooks = {};
};

/// How a round ended.
struct RoundResult {
  GroupState state = GroupState::kInit;   // succeeded, failed or stopped
  std::optional<WorkerExit> failure;      // the first
  std::optional<std::string> error_json;  // what that worker wrote to TORCHELASTIC_ERROR_FILE
  std::vector<Unkillable> unkillable;     // SIGKILL did not end them
  int stopped = 0;                        // workers that ddprun stopped
  int killed = 0;                         // of these, the ones that needed SIGKILL
  Duration stop_took{};  // from the first stop signal until none was waited for any more
  enum class Told { kNo, kYes };
  Told death_told = Told::kNo;  // whether the first failure had its line already

  [[nodiscard]] StopFacts stop_facts() const {
    return {stopped, killed, static_cast<int>(unkillable.size()), stop_took};
  }
};

class RoundRunner : public std::enable_shared_from_this<RoundRunner> {
 public:
  RoundRunner(boost::asio::any_io_executor executor, RoundInputs inputs);

  /// From the first spawn until every worker is gone, or given up as unkillable, and their output
  /// is read. No deadline while the workers are healthy: training takes as long as it takes. Once
  /// only.
  /// Do not cancel run(): request_stop() ends it. A cancelled run() throws at its next wait without
  /// stopping the workers, which the kernel then kills when this process ends.
  [[nodiscard]] boost::asio::awaitable<RoundResult> run();
  /// A signal that ends the run; the second one kills at once. Before run() nothing will be
  /// started.
  void request_stop(int signal);
  /// The round is over elsewhere: ends the workers with `signal`, then, after `grace`, with
  /// SIGKILL. None of them is blamed. Before run() nothing will be started.
  void end(int signal, Duration grace);
  /// Whether a worker failed and the owner is yet to be told: its files are being read.
  [[nodiscard]] bool failure_is_untold() const { return group_.first_failure() && !failure_told_; }
  /// A signal that every worker gets once, and that changes nothing here.
  void pass_on(int signal);

 private:
  // What is made and looked up before the first worker starts.
  struct Files {
    Result<std::string> program;
    Result<OutputContext> output;
  };
  struct Opening {
    LocalRank first;  // who waits for the files
    WaitNote note;
  };
  struct Worker {
    WorkerPlan plan;
    WorkerOutputPlan output_plan;
    std::optional<WorkerOutput> output;
    std::optional<Child> child;
    int passed_signal = 0;
    std::optional<WorkerExit> exit;
    TimePoint exited_at{};
  };

  void step(const GroupEvent& event);
  void act(const Spawn& action);
  void act(const Signal& action);
  void act(const ArmTimer& action);
  void act(const TellFailure& action);
  void act(const TellStop& action);
  void act(const Finish& action);
  void act(const AllRunning& action);
  void act(const AllSucceeded& action);
  void act(const FirstFailure& action);
  void open_files(LocalRank first);
  void on_files(LocalRank first, Files files);
  void give_up_opening();
  void act(const TellLeftBehind& action);
  void spawn_worker(LocalRank rank);
  void fail_to_spawn(const SpawnFailed& failure);
  [[nodiscard]] Result<void> start_worker(Worker& worker);
  [[nodiscard]] static boost::asio::awaitable<void> watch(std::shared_ptr<RoundRunner> self,
                                                          LocalRank rank);
  void on_exit(LocalRank rank, ExitStatus status);
  [[nodiscard]] static boost::asio::awaitable<void> look_into_files(
      std::shared_ptr<RoundRunner> self, LocalRank first);
  [[nodiscard]] std::vector<std::string> left_behind(LocalRank rank) const;
  [[nodiscard]] boost::asio::awaitable<void> drain_outputs();
  [[nodiscard]] WorkerName name_of(LocalRank rank) const;
  [[nodiscard]] RoundResult result() const;
  [[nodiscard]] Worker& worker(LocalRank rank);
  [[nodiscard]] const Worker& worker(LocalRank rank) const;

  boost::asio::any_io_executor executor_;
  RoundInputs inputs_;
  WorkerGroup group_;
  std::optional<Opening> opening_;
  std::optional<OutputContext> output_;           // when it is there
  std::string program_;                           // its path
  bool failure_told_ = false;                     // to the owner, with what the files say
  std::optional<std::string> error_json_;         // of the worker that failed first
  TimePoint since_;                               // all workers run; before, this began
  std::vector<std::unique_ptr<Worker>> workers_;  // by local rank; a Child must not move
  boost::asio::steady_timer stop_timer_;
  boost::asio::steady_timer finished_;  // never expires by itself: cancelled when the group is over
  RoundResult::Told death_told_ = RoundResult::Told::kNo;
};

}  // namespace ddprun
