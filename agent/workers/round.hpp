// RoundRunner: one round on this node: feeds a LocalRound what happens, and does what that orders,
// with processes, files and a timer. It decides nothing. Thread rule: the io_context's thread.
// Ownership: shared, because the watch on a worker that nothing ends continues after the round is
// over.
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
#include "agent/node/local_round.hpp"
#include "agent/node/pump.hpp"
#include "agent/output/console.hpp"
#include "agent/output/console_queue.hpp"
#include "agent/output/output.hpp"
#include "agent/output/output_plan.hpp"
#include "agent/output/wait_line.hpp"
#include "agent/proc/cgroup.hpp"
#include "agent/proc/child.hpp"
#include "agent/proc/descendants.hpp"
#include "agent/proc/orphans.hpp"
#include "agent/warm/warm_workers.hpp"
#include "agent/watch/watch_lines.hpp"
#include "agent/workers/device_watch.hpp"
#include "agent/workers/round_evidence.hpp"
#include "agent/workers/round_links.hpp"
#include "agent/workers/round_watch.hpp"
#include "agent/workers/round_worker.hpp"
#include "agent/workers/spares.hpp"
#include "base/clock.hpp"
#include "base/store_facts.hpp"
#include "rendezvous/client/membership/events.hpp"

namespace spdlog {
class logger;
}

namespace ddprun {

// A stop that takes longer is told this often, with the ranks that still run.
inline constexpr Duration kCountdownInterval = std::chrono::seconds(10);
// Between two looks at the processor time of the workers.
inline constexpr std::chrono::seconds kCpuSampleInterval{10};

/// Called while the round runs.
struct RoundHooks {
  std::function<void()> opened;  // the log files are there, no worker was started yet
  std::function<void(client::Event event)> tell;  // see local::Tell; GroupQuiet, too
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

class RoundRunner : public std::enable_shared_from_this<RoundRunner> {
 public:
  RoundRunner(boost::asio::any_io_executor executor, RoundInputs inputs);
  ~RoundRunner() { end_countdown(); }
  RoundRunner(const RoundRunner&) = delete;
  RoundRunner& operator=(const RoundRunner&) = delete;
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
  /// The same for a round that is over elsewhere.
  void end(const client::StopGroup& order);
  /// After run(), at once: the workers that the next round takes over.
  [[nodiscard]] CarriedWorkers hand_over();
  /// A signal that every worker gets once, and that changes nothing here; unless forced, those that
  /// would end by it do not, nor those that ignore it.
  struct PassedOn {
    int ranks = 0;             // that got it
    std::vector<Rank> ends{};  // that would end by it
  };
  PassedOn pass_on(int signal, bool force);
  /// Of those that run: which would end by that signal.
  [[nodiscard]] std::vector<Rank> ended_by(int signal) const;
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
    return written ? std::optional<Duration>(Clock::now() - *written) : std::nullopt;
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
  [[nodiscard]] bool holds() const { return round_->group().state() == GroupState::kHolding; }
  [[nodiscard]] bool stops() const { return round_->group().state() == GroupState::kStopping; }
  [[nodiscard]] bool failure_is_unreported() const { return round_->failure_is_unreported(); }
  /// Until the worker has ended, in whatever round; once, from its start.
  [[nodiscard]] static boost::asio::awaitable<void> watch(std::shared_ptr<RoundWorker> watched,
                                                          Orphans& orphans);

 private:
  friend class Pump<LocalRound, local::Event, RoundRunner>;
  friend class RoundWatch;
  // What is made and looked up before the first worker starts.
  struct Files {
    Result<std::string> program;
    Result<OutputContext> output;
  };
  using Worker = RoundWorker;

  [[nodiscard]] static TimePoint now() { return Clock::now(); }
  void feed(local::Event event) { round_.feed(std::move(event)); }
  void answer(local::Event event) { round_.answer(std::move(event)); }
  void on_step();
  void act(const local::OpenFiles& action);
  void act(const local::GiveUpFiles& action);
  void act(const local::AwaitDevices& action);
  void act(const local::PostSpawn& action);
  void act(const local::StartWorker& action);
  void act(const local::TellRound& action);
  void act(const Signal& action);
  void act(const local::AskStacks& action);
  void act(const ArmTimer& action);
  void act(const local::CancelTimer& action);
  void act(const local::LookForComplaint& action);
  void act(const local::ArmHearing& action);
  void act(const local::Look& action);
  void act(const local::ReadRaised& action);
  void act(const local::CatchUp& action) { worker(action.rank).output->catch_up(); }
  void act(const local::LookForEvidence& action);
  void act(const local::Tell& action);
  void act(const local::TellSpawnFailed& action) { inputs_.hooks.spawn_failed(action.failure); }
  void act(const local::Over& action);
  void act(const local::ExitTaken& action);
  void act(const local::SignalsBegin& action);
  void act(const local::SpawnGivenUp& action);
  void act(const local::GaveUp& action);
  void act(const local::LogFailure& action);
  void act(const local::LogStop& action) { inputs_.hooks.stopping(action.workers); }
  void act(const local::LogLeftBehind& action);
  void act(const local::LogAgain& action);
  void act(const local::LogRecovery& action);

  [[nodiscard]] bool await_room(LocalRank rank);
  [[nodiscard]] Result<void> start_worker(LocalRank rank);
  void note_obedience(LocalRank rank, int signal);
  void signal_group(LocalRank rank, int signal);
  void kill_but_pipe_ends(LocalRank rank);
  enum class Answer { kTakes, kIgnores, kEnds };
  /// What a signal that is passed on does to a worker: it handles or blocks it, or the signal ends
  /// nothing; it ignores it; it would end by it.
  [[nodiscard]] Answer answer_to(LocalRank rank, int signal) const;
  /// What the kernel counts of the processes that ranks have left, in the same order each time.
  [[nodiscard]] std::vector<RankProgress> progress_of_left() const;
  [[nodiscard]] std::vector<LocalRank> abort_with_stacks(const std::vector<LocalRank>& ranks);
  void give_up(const GiveUp& order);
  /// Before what may change the round: whose link has ended meanwhile does not survive it.
  void look_at_survivors();
  /// It has ended: what is known of that.
  void exited(LocalRank rank, ExitStatus status, LeftBehind left);
  [[nodiscard]] WorkerName name_of(LocalRank rank) const;
  [[nodiscard]] WorkerExit describe_exit(LocalRank rank) const;
  [[nodiscard]] std::vector<std::string> left_behind(LocalRank rank) const;
  void look_at_claims(const RankClaims& claims);
  [[nodiscard]] WatchedRanks watched_ranks() const;
  void complaint_found(LocalRank rank, std::optional<Complaint> complaint);
  [[nodiscard]] static boost::asio::awaitable<void> save_stacks(std::shared_ptr<RoundRunner> self);
  [[nodiscard]] std::vector<RankFacts> look_at_ranks();
  void sample_cpu();
  void add_cpu(const Worker& worker, RankFacts& facts) const;
  /// What it said last, in the stream that says why it ended.
  [[nodiscard]] std::string account(LocalRank rank);
  [[nodiscard]] std::optional<std::string> likeness(LocalRank rank);
  [[nodiscard]] local::Raised raised(LocalRank rank);
  /// Of ranks that have not ended.
  [[nodiscard]] std::vector<RankException> exceptions();
  [[nodiscard]] std::vector<LocalRound::AtEnd> ends();
  /// Whether the last of the lines quoted of it went to the console.
  [[nodiscard]] bool is_shown(const WorkerExit& failed) const;
  [[nodiscard]] std::vector<StuckProcess> stuck(LocalRank rank) const;
  [[nodiscard]] int descendants_ended(LocalRank rank) const;

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
  void plan_one(LocalRank rank);
  void say_where_hidden_output_is();
  /// How long a console that takes nothing may hold workers up.
  void hold_up_for(Duration max);
  void tell_input(const InputWatch::News& news);
  void tell_quiet(Duration lasts, std::optional<int> echo) const;
  /// While a stop waits for ranks, says every kCountdownInterval how much time they have left and
  /// which they are; the line on a terminal says it every second. Until end_countdown(), or the
  /// deadline of SIGKILL.
  void begin_countdown(TimePoint deadline);
  void count_down(TimePoint deadline);
  void end_countdown();
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
                                                                  LocalRank rank);
  [[nodiscard]] boost::asio::awaitable<void> drain_outputs();
  [[nodiscard]] boost::asio::awaitable<std::vector<RankLog>> written_logs() const;
  [[nodiscard]] std::optional<Cgroup> make_leaf(LocalRank rank) const;
  [[nodiscard]] std::vector<Rank> running_ranks() const;
  void tell_devices();
  void record_steps();
  void hear(LocalRank rank, const worker_link::Report& report);
  /// Of a worker that has failed, and of those that run here.
  [[nodiscard]] std::string steps_of(LocalRank failed) const;
  [[nodiscard]] bool all_stepped() const;
  [[nodiscard]] Worker& worker(LocalRank rank);
  [[nodiscard]] const Worker& worker(LocalRank rank) const;
  [[nodiscard]] std::shared_ptr<Worker>& slot(LocalRank rank);
  [[nodiscard]] std::vector<LocalRank> local_ranks() const;

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
  boost::asio::steady_timer countdown_timer_;
  boost::asio::steady_timer finished_;  // never expires by itself: cancelled by round_over()
  std::shared_ptr<RoundWatch> watch_;
  RoundEvidence evidence_;
  RoundLinks links_;
  Pump<LocalRound, local::Event, RoundRunner> round_;
};

}  // namespace ddprun
