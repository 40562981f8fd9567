// RoundRunner: one round on this node: the ports of a RoundDriver, with processes, files and a
// timer. It decides nothing. Thread rule: the io_context's thread. Ownership: shared, because the
// watch on a worker that nothing ends continues after the round is over.
#pragma once

#include <sys/resource.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "agent/config/plan.hpp"
#include "agent/events/events.hpp"
#include "agent/node/round_driver.hpp"
#include "agent/output/console.hpp"
#include "agent/output/console_queue.hpp"
#include "agent/output/output.hpp"
#include "agent/output/output_plan.hpp"
#include "agent/output/wait_note.hpp"
#include "agent/proc/cgroup.hpp"
#include "agent/proc/child.hpp"
#include "agent/proc/descendants.hpp"
#include "agent/proc/orphans.hpp"
#include "agent/warm/warm_workers.hpp"
#include "agent/watch/survivor_lines.hpp"
#include "agent/workers/device_watch.hpp"
#include "agent/workers/exiting_workers.hpp"
#include "agent/workers/round_evidence.hpp"
#include "agent/workers/round_links.hpp"
#include "agent/workers/round_watch.hpp"
#include "agent/workers/round_worker.hpp"
#include "agent/workers/spares.hpp"
#include "agent/workers/stop_countdown.hpp"
#include "base/clock.hpp"
#include "base/rank_claims.hpp"
#include "rendezvous/client/membership/events.hpp"

namespace spdlog {
class logger;
}

namespace ddprun {

// Between two looks at the processor time of the workers.
inline constexpr std::chrono::seconds kCpuSampleInterval{10};

/// Called while the round runs.
struct RoundHooks {
  std::function<void()> opened;  // the log files are there, no worker was started yet
  std::function<void(client::Event event)> tell;  // see RoundPorts; GroupQuiet, too
  std::function<void(int workers)> stopping;      // by a signal to ddprun
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
  EventLog& events;
  DeviceWatch& devices;
  std::optional<Cgroup> cgroup;             // for those of the workers; none: they get none
  std::shared_ptr<warm::WarmWorkers> warm;  // null: all workers start cold
  std::shared_ptr<WorkerLinks> links;
  std::shared_ptr<Spares> spares;  // null: there are none
  std::shared_ptr<ExitingWorkers> exiting;
  CarriedWorkers carried = {};  // of an earlier round, with the place they have in this one
  RoundHooks hooks = {};
  std::function<std::vector<StoreWait>()> store_waits = {};  // of the round's store; may be empty
};

/// Whether its ranks may read the user's terminal, and one of them could go unseen.
[[nodiscard]] bool may_ask_for_input(const RoundInputs& inputs);

class RoundRunner : public std::enable_shared_from_this<RoundRunner>, private RoundPorts {
 public:
  RoundRunner(boost::asio::any_io_executor executor, RoundInputs inputs);
  /// With the workers that it takes over; their ends are its matter from now on.
  [[nodiscard]] static std::shared_ptr<RoundRunner> make(boost::asio::any_io_executor executor,
                                                         RoundInputs inputs);

  /// From the first spawn until every worker is gone, or given up as unkillable, and their output
  /// is read. No deadline while the workers are healthy: training takes as long as it takes. Once
  /// only.
  /// Do not cancel run(): request_stop() ends it. A cancelled run() throws at its next wait without
  /// stopping the workers, which the kernel then kills when this process ends.
  [[nodiscard]] boost::asio::awaitable<RoundResult> run();
  /// A signal that ends the run; the second one kills at once. Before run() nothing will be
  /// started.
  void request_stop(int signal);
  /// The same for a round that is over elsewhere: see RoundDriver::end().
  void end(const client::StopGroup& order);
  /// After run(), at once: the workers that the next round takes over.
  [[nodiscard]] CarriedWorkers hand_over();
  /// See RoundDriver.
  RoundDriver::PassedOn pass_on(int signal, bool force) { return driver_.pass_on(signal, force); }
  [[nodiscard]] std::vector<Rank> ended_by(int signal) const { return driver_.ended_by(signal); }
  /// Stops all workers, or continues them. Returns how many run.
  int pause(bool on);
  /// The stacks of all ranks that run, also in a file of the log directory: see RoundWatch::dump().
  [[nodiscard]] boost::asio::awaitable<SavedStacks> dump_stacks(std::string why) {
    return RoundWatch::dump(watch_, std::move(why));
  }
  /// See client::CheckHang.
  void check_hang(std::optional<int> echo) {
    if (echo) {
      watch_->look_again(*echo);
    } else {
      watch_->give_up_hang();
    }
  }
  /// Every worker that was planned; pid 0: it does not run.
  [[nodiscard]] std::vector<WorkerName> workers() const;
  /// Whether a worker was started from the template.
  [[nodiscard]] bool started_warm(LocalRank rank) const { return worker(rank).warm; }
  /// Of a worker that runs: since its last output; none if not all of that passes through here.
  [[nodiscard]] std::optional<Duration> silence_of(LocalRank rank) const {
    const auto written = worker(rank).output->last_written();
    return written ? std::optional<Duration>(now() - *written) : std::nullopt;
  }
  /// Empty: no files are kept, or not made yet.
  [[nodiscard]] std::string log_directory() const {
    return output_ ? output_->logs.directory() : std::string();
  }
  /// Two processes take part in `round` as rank 0: says it once if a script starts its own workers.
  void rank_claimed(Round round, const RankClaims& claims);
  /// What was said of that; empty: nothing.
  [[nodiscard]] const std::string& own_workers() const { return own_workers_; }
  /// placement_table() of the workers that were planned.
  [[nodiscard]] std::string placement() const;
  /// What the worker reported over its link.
  [[nodiscard]] std::optional<worker_link::LastStep> last_step(LocalRank rank) const {
    return links_.last_step(rank);
  }
  /// Whether ranks that survive wait for the next round, and no others are left.
  [[nodiscard]] bool holds() const { return driver_.group().state() == GroupState::kHolding; }
  [[nodiscard]] bool stops() const { return driver_.group().state() == GroupState::kStopping; }
  [[nodiscard]] bool failure_is_unreported() const { return driver_.failure_is_unreported(); }
  /// Until the worker has ended, in whatever round; once, from its start.
  [[nodiscard]] static boost::asio::awaitable<void> watch(std::shared_ptr<RoundWorker> watched,
                                                          Orphans& orphans);

 private:
  // What is made and looked up before the first worker starts.
  struct Files {
    Result<std::string> program;
    Result<OutputContext> output;
  };
  using Worker = RoundWorker;

  [[nodiscard]] TimePoint now() const override { return Clock::now(); }
  void open_files() override;
  void give_up_files() override;
  [[nodiscard]] bool await_devices() override;
  [[nodiscard]] bool await_room(LocalRank rank) override;
  void post_spawn(LocalRank rank) override;
  [[nodiscard]] Result<void> start_worker(LocalRank rank) override;
  [[nodiscard]] bool survives(LocalRank rank) const override;
  [[nodiscard]] bool tell_round(LocalRank rank) override;
  void signal_group(LocalRank rank, int signal) override;
  void kill_but_pipe_ends(LocalRank rank) override;
  [[nodiscard]] Answer answer_to(LocalRank rank, int signal) const override;
  [[nodiscard]] std::vector<RankProgress> progress_of_left(
      const std::vector<LocalRank>& ranks) const override;
  [[nodiscard]] std::vector<LocalRank> abort_with_stacks(
      const std::vector<LocalRank>& ranks) override;
  void signal_worker(LocalRank rank, int signal) override;
  void arm_timer(TimePoint deadline) override;
  void cancel_timer() override;
  [[nodiscard]] WorkerName name_of(LocalRank rank) const override;
  [[nodiscard]] WorkerExit describe_exit(LocalRank rank) const override;
  [[nodiscard]] std::vector<std::string> left_behind(LocalRank rank) const override;
  void look_for_complaint(LocalRank rank, const ExitStatus& status) override;
  void arm_hearing(TimePoint deadline) override;
  void look_at_claims(const RankClaims& claims);
  [[nodiscard]] WatchedRanks watched_ranks() const;
  void complaint_found(LocalRank rank, std::optional<Complaint> complaint);
  [[nodiscard]] static boost::asio::awaitable<void> save_stacks(std::shared_ptr<RoundRunner> self);
  [[nodiscard]] std::vector<RankFacts> look_at_ranks() override;
  void sample_cpu();
  void add_cpu(const Worker& worker, RankFacts& facts) const;
  [[nodiscard]] bool may_handle(LocalRank rank, int signal) const override;
  [[nodiscard]] std::optional<std::string> last_line(LocalRank rank) const override;
  [[nodiscard]] Raised raised(LocalRank rank) override;
  [[nodiscard]] std::vector<StoreWait> look_at_store() override {
    return inputs_.store_waits ? inputs_.store_waits() : std::vector<StoreWait>();
  }
  /// Whether the last of the lines quoted of it went to the console.
  [[nodiscard]] bool is_shown(const WorkerExit& failed) const;
  [[nodiscard]] std::vector<StuckProcess> stuck(LocalRank rank) const override;
  [[nodiscard]] int descendants_ended(LocalRank rank) const override;
  void catch_up(LocalRank rank) override { worker(rank).output->catch_up(); }
  void look_for_evidence(LocalRank rank) override;
  void on_event(const GroupEvent& event) override;
  void gave_up(const GiveUp& order) override;
  void on_step() override {
    if (!ending_since_ && driver_.group().state() > GroupState::kHealthy) ending_since_ = now();
    const GroupState state = driver_.group().state();
    const bool stops = state == GroupState::kStopping || state == GroupState::kKilling;
    if (stops) hold_up_for(kConsoleStallAtStop);
    watch_->update(driver_.group());
    if (inputs_.spares && driver_.group().state() > GroupState::kHealthy) inputs_.spares->pause();
  }
  void log_failure(const WorkerExit& first, int others) override;
  void log_stop(int, int workers) override { inputs_.hooks.stopping(workers); }
  void log_left_behind(const LeftBehindFacts& facts) override;
  void log_again(const WorkerName& worker, const ExitStatus& status) override;
  void recovered(const Recovery& recovery) override;
  void tell(client::Event event) override;
  void spawn_failed(const SpawnFailed& failure) override { inputs_.hooks.spawn_failed(failure); }
  void round_over() override {
    watch_->end();
    if (inputs_.warm) inputs_.warm->release();
    hearing_timer_.cancel();
    cpu_timer_.cancel();
    finished_.cancel();
  }

  [[nodiscard]] static boost::asio::awaitable<void> wait_for_devices(
      std::shared_ptr<RoundRunner> self);
  void on_files(Files files);
  void running();
  void ask_warm_workers();
  [[nodiscard]] Result<void> open_output(Worker& started);
  void tell_warm_starts();
  [[nodiscard]] std::vector<Rank> started_ranks(bool warm_only) const;
  void prepare_warm_restart();
  [[nodiscard]] Result<Child> start_cold(const Worker& started, LocalRank rank);
  void record_into(OutputContext& output);
  void record_signal(int signal);
  void plan_workers();
  void plan_one(LocalRank rank);
  void say_where_hidden_output_is();
  /// How long a console that takes nothing may hold workers up.
  void hold_up_for(Duration max);
  void tell_input(const InputWatch::News& news);
  void adopt();
  void make_place(LocalRank rank);
  void joined(LocalRank rank);
  void exits(LocalRank rank);
  void exits_soon(LocalRank rank, int looks);
  [[nodiscard]] bool follows_another_exit(LocalRank rank) const;
  [[nodiscard]] static boost::asio::awaitable<void> wait_for_room(std::shared_ptr<RoundRunner> self,
                                                                  LocalRank rank);
  void tell_spares();
  [[nodiscard]] Descendants& find_descendants(Worker& ended);
  [[nodiscard]] static boost::asio::awaitable<void> look_into_files(
      std::shared_ptr<RoundRunner> self, LocalRank first);
  [[nodiscard]] static boost::asio::awaitable<void> look_into_log(std::shared_ptr<RoundRunner> self,
                                                                  LocalRank rank,
                                                                  ExitStatus status);
  [[nodiscard]] boost::asio::awaitable<void> drain_outputs();
  [[nodiscard]] boost::asio::awaitable<std::vector<RankLog>> written_logs() const;
  [[nodiscard]] std::optional<Cgroup> make_leaf(LocalRank rank) const;
  [[nodiscard]] std::vector<Rank> running_ranks() const;
  void tell_devices();
  void record_steps();
  [[nodiscard]] RoundLinks::Workers linked_workers();
  /// Of a worker that has failed, and of those that run here.
  [[nodiscard]] std::string steps_of(LocalRank failed) const;
  [[nodiscard]] bool all_stepped() const;
  [[nodiscard]] Worker& worker(LocalRank rank);
  [[nodiscard]] const Worker& worker(LocalRank rank) const;

  boost::asio::any_io_executor executor_;
  RoundInputs inputs_;
  std::optional<WaitNote> opening_;  // while the files are waited for
  bool steps_recorded_ = false;
  bool asked_warm_ = false;                       // while the answers are waited for
  warm::Start warm_start_;                        // of local rank 0
  std::optional<OutputContext> output_;           // when it is there
  std::string program_;                           // its path
  std::vector<std::shared_ptr<Worker>> workers_;  // by local rank
  RecoveredRanks recovered_;                      // how, of a round that takes workers over
  bool recovers_;                                 // until all of those have joined
  TimePoint began_ = Clock::now();
  std::optional<TimePoint> ending_since_;
  boost::asio::steady_timer cpu_timer_;
  boost::asio::steady_timer stop_timer_;
  boost::asio::steady_timer hearing_timer_;
  boost::asio::steady_timer death_line_timer_;
  std::optional<WorkerExit> unsaid_failure_;  // until it is told or the round is over
  int claims_ = 0;                            // see rank_claimed()
  std::string own_workers_;
  bool timed_out_ = false;  // a rank reported that a collective did not complete in time
  StopCountdown countdown_;
  boost::asio::steady_timer finished_;  // never expires by itself: cancelled by round_over()
  std::shared_ptr<RoundWatch> watch_;
  RoundEvidence evidence_;
  RoundLinks links_;
  RoundDriver driver_;
  int recorded_signal_ = 0;  // the last that events.jsonl has
};

}  // namespace ddprun
