// RunContext: what all rounds of a run on this node share: configuration, log folders, consoles,
// and how ddprun's own errors are reported. Thread rule: the io_context's thread. Ownership:
// config, environment and logger outlive it; it outlives the rounds prepared with it.
#pragma once

#include <sys/resource.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agent/config/launch_config.hpp"
#include "agent/events/events.hpp"
#include "agent/events/torch_events.hpp"
#include "agent/output/console.hpp"
#include "agent/output/log_tree.hpp"
#include "agent/proc/disk_threads.hpp"
#include "agent/proc/leftovers.hpp"
#include "agent/proc/orphans.hpp"
#include "agent/workers/round.hpp"
#include "base/environment.hpp"

namespace ddprun {

struct AgentInputs {
  const LaunchConfig& config;
  const Environment& environment;
  spdlog::logger& logger;
  Consoles consoles;
  std::shared_ptr<LogTree>& logs;  // filled by RunContext::open_logs()
  EventLog& events;
  DiskThreads& disks;
  std::optional<rlimit> descriptor_limit;  // what workers get; none: that of this process
  Orphans& orphans;
  std::string nonce;                        // of this process: a short random text
  std::optional<Cgroup> cgroup;             // of this run, for those of the workers
  std::shared_ptr<warm::WarmWorkers> warm;  // null: all workers start cold
  /// From now on commands may reach this run; called once or more. It costs no start-up time: the
  /// workers of a single node run by then.
  std::function<void()> begin_control = {};
};

/// An error that is the last thing said of the run.
struct OwnError {
  std::string code{};
  std::string text{};
  int exit_code = 0;
};

class RunContext {
 public:
  explicit RunContext(AgentInputs inputs);
  ~RunContext() { in_.events.stop_observing(this); }
  RunContext(const RunContext&) = delete;
  RunContext& operator=(const RunContext&) = delete;

  /// Makes the base of the log folders. Errors: see LogTree::open. Before prepare(), once. A file
  /// system that does not respond is waited for, and said after kQuietMax.
  [[nodiscard]] boost::asio::awaitable<Result<void>> open_logs();
  /// The pipe for timers of workers, if there is to be one. Before open_logs(), once; it waits in
  /// the same way.
  [[nodiscard]] boost::asio::awaitable<Result<void>> open_timers();
  /// What the workers of one start are run with; their folder and files are made in the round.
  [[nodiscard]] RoundInputs prepare(RoundFacts facts);

  /// A round was decided; one is over; the run is: for --event-log-handler=console.
  void log_round(const RoundFacts& facts);
  void log_round_over() { round_over_ = Clock::now(); }
  void log_end(const TorchEvents::End& end);

  /// Reports an error of ddprun's own, also to the launcher above. Returns the exit code.
  int fail(const std::string& code, const Error& error);
  /// The same for a worker that could not be started; the agent says it when all is over here.
  [[nodiscard]] OwnError fail_to_spawn(const SpawnFailed& failure, Rank first_rank);
  void log_unkillable(const RoundResult& result);
  /// After the workers' end, in a run that failed or was stopped: what is left in /dev/shm.
  void log_shared_names() const;
  /// For TORCHELASTIC_ERROR_FILE of the launcher above, if there is one.
  void leave_error_file(const std::string& text);
  /// The same for an error that is not a worker's.
  void leave_own_error(const std::string& sentence);
  /// The same for the error.json of the worker that failed first, with its code.
  void pass_error_up(const RoundResult& result);

  [[nodiscard]] const LaunchConfig& config() const { return in_.config; }
  [[nodiscard]] spdlog::logger& logger() const { return in_.logger; }
  [[nodiscard]] const std::string& hostname() const { return hostname_; }
  [[nodiscard]] TimePoint started() const { return started_; }
  [[nodiscard]] Duration since_start() const { return Clock::now() - started_; }
  /// Calls `done` when what was asked of the log directory's disk so far is done.
  void after_files(std::function<void()> done) {
    in_.disks.logs.post([] {}, std::move(done));
  }
  void begin_control() const {
    if (in_.begin_control) in_.begin_control();
  }
  /// The line on the terminal; null: there is none.
  [[nodiscard]] WaitLine* waits() const { return in_.consoles.waits.get(); }
  /// All that is to be shown so far; `deadline`: of a console that takes nothing. No line is
  /// drawn there then.
  [[nodiscard]] boost::asio::awaitable<void> console_is_written(TimePoint deadline) const;
  /// Workers that are left notice it.
  void close_links();
  /// All workers of a round run.
  void round_runs() { links_->round_runs(); }
  /// Ctrl-Z stops spares and what --warm has ready.
  void stop_waiting_workers() const;
  /// They are continued, and had no time meanwhile.
  void continue_waiting_workers(Duration stopped) const;
  /// Timers of workers do not count that time; before any of these is continued.
  void extend_timers(Duration stopped) const { links_->extend_timers(stopped); }
  /// Workers that wait for a round that will not come.
  [[nodiscard]] boost::asio::awaitable<void> end_waiting_workers();
  /// Null: there are to be none.
  [[nodiscard]] Spares* spares() const { return spares_.get(); }
  [[nodiscard]] LogTree& logs() { return *in_.logs; }
  [[nodiscard]] EventLog& events() { return in_.events; }
  /// Of all workers, as far as it passed through ddprun.
  [[nodiscard]] std::uint64_t output_bytes() const { return *output_bytes_; }

 private:
  void log_lines(const TorchEvents::Lines& lines);

  AgentInputs in_;
  std::shared_ptr<ExitingWorkers> exiting_;
  DeviceWatch devices_;
  std::shared_ptr<WorkerLinks> links_ = std::make_shared<WorkerLinks>();
  LogTreeOptions log_options_;
  std::string hostname_;
  std::shared_ptr<std::uint64_t> output_bytes_;
  std::shared_ptr<Spares> spares_;
  std::shared_ptr<std::string> events_in_;  // the directory; of the thread of the log files
  SharedNames shared_names_;
  TimePoint started_;
  TimePoint round_over_;                       // the last one, or the start
  std::unique_ptr<TorchEvents> torch_events_;  // null: they are not asked for
};

[[nodiscard]] std::string this_host();

/// `NET-PORT` or `START`, for an error before any worker runs.
[[nodiscard]] const char* start_code_of(ErrorKind kind);

}  // namespace ddprun
