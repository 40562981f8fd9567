#include "agent/run_context.hpp"

#include <spdlog/logger.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "agent/config/plan.hpp"
#include "agent/output/wait_line.hpp"
#include "agent/proc/files.hpp"
#include "agent/proc/leftovers.hpp"
#include "agent/report/error_file.hpp"
#include "agent/report/lines.hpp"
#include "base/message_line.hpp"

namespace ddprun {

namespace asio = boost::asio;

namespace {

std::int64_t epoch_seconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

WallTime wall_time() {
  using std::chrono::milliseconds;
  return std::chrono::time_point_cast<milliseconds>(std::chrono::system_clock::now());
}

}  // namespace

std::string this_host() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

const char* start_code_of(ErrorKind kind) {
  return kind == ErrorKind::kPortTaken ? "NET-PORT" : "START";
}

RunContext::RunContext(AgentInputs inputs)
    : config_(inputs.config),
      environment_(inputs.environment),
      logger_(inputs.logger),
      consoles_(std::move(inputs.consoles)),
      logs_(inputs.logs),
      events_(inputs.events),
      disks_(inputs.disks),
      descriptor_limit_(inputs.descriptor_limit),
      orphans_(inputs.orphans),
      nonce_(std::move(inputs.nonce)),
      exiting_(std::make_shared<ExitingWorkers>(disks_.logs.executor())),
      devices_({disks_.logs.executor(), environment_, logger_, events_, nonce_,
                visible_devices_of_workers(config_.workers, environment_), consoles_.waits}),
      cgroup_(std::move(inputs.cgroup)),
      warm_(std::move(inputs.warm)),
      begin_control_(std::move(inputs.begin_control)),
      log_options_{config_.log.dir, value_or(environment_, "TMPDIR", ""), config_.run_id},
      hostname_(this_host()),
      output_bytes_(std::make_shared<std::uint64_t>(0)),
      events_in_(std::make_shared<std::string>()),
      started_(Clock::now()),
      round_over_(started_) {
  if (config_.torch_events) {
    torch_events_ = std::make_unique<TorchEvents>(config_, hostname_);
    events_.observe(this, [this](const RunEvent& event, Duration) {
      log_lines(torch_events_->take(event, wall_time()));
    });
  }
  if (config_.stopping.spares == 0) return;
  spares_ = std::make_shared<Spares>(
      disks_.logs.executor(),
      SpareInputs{config_, environment_, logger_, events_, orphans_, disks_.logs, logs_, consoles_,
                  links_, nonce_, descriptor_limit_, cgroup_, output_bytes_});
}

asio::awaitable<Result<void>> RunContext::open_logs() {
  if (!config_.rendezvous) {  // nothing comes between this and the first round
    logs_ = std::make_shared<LogTree>(LogTree::open_later(log_options_));
    co_return Result<void>();
  }
  std::function<Result<LogTree>()> open = [options = log_options_] {
    return LogTree::open(options);
  };
  // No deadline: nothing was started, and a stop signal ends the wait.
  const WaitNote note(disks_.logs.executor(), logger_, "the log directory " + log_options_.place(),
                      TimePoint::max());
  auto logs = co_await run_on<Result<LogTree>>(disks_.logs, std::move(open), TimePoint::max());
  if (!*logs) co_return logs->error();
  logs_ = std::make_shared<LogTree>(std::move(**logs));
  co_return Result<void>();
}

asio::awaitable<Result<void>> RunContext::open_timers() {
  if (!config_.timer_pipe) co_return Result<void>();
  std::function<Result<OpenPipe>()> open = [wanted = *config_.timer_pipe, nonce = nonce_] {
    Result<std::string> own = private_directory();
    if (own) *own += "/" + std::to_string(::getpid()) + "-" + nonce + kTimersSuffix;
    return open_pipe(wanted, own);
  };
  const WaitNote note(disks_.logs.executor(), logger_, "the pipe for timers of workers",
                      TimePoint::max());
  auto opened = co_await run_on<Result<OpenPipe>>(disks_.logs, std::move(open), TimePoint::max());
  const Result<OpenPipe>& pipe = *opened;
  if (!pipe) {
    co_return Error(pipe.error().kind, pipe.error().sentence +
                                           "; unset TORCHELASTIC_ENABLE_FILE_TIMER to run without");
  }
  if (!pipe->note.empty()) logger_.info(note_line("TIMER", pipe->note));
  links_->read_timers(disks_.logs.executor(), *pipe, logger_);
  co_return Result<void>();
}

void RunContext::log_lines(const TorchEvents::Lines& lines) {
  for (const std::string& line : lines) logger_.warn(line);  // asked for, also with --quiet
}

void RunContext::log_round(const RoundFacts& facts) {
  if (!torch_events_) return;
  log_lines(torch_events_->round(facts, Clock::now() - round_over_, wall_time()));
}

void RunContext::log_end(const TorchEvents::End& end) {
  if (torch_events_) log_lines(torch_events_->end(end, wall_time()));
}

void RunContext::close_links() {
  const std::string timers = links_->timer_pipe();
  links_->close();
  if (timers.empty()) return;
  disks_.logs.post([timers] { ::unlink(timers.c_str()); }, [] {});
}

RoundInputs RunContext::prepare(RoundFacts facts) {
  facts.nonce = nonce_;
  const Warn warn = [this](const std::string& sentence) {
    logger_.warn(warning_line("LOG", sentence));
  };
  const auto open_output = [logs = logs_, config = config_, restarts = facts.restarts,
                            round = facts.round, hostname = hostname_, warn, disk = disks_.logs,
                            wanted = events_.wants_file(), bytes = output_bytes_,
                            events_in = events_in_]() -> Result<OutputContext> {
    auto output = open_or_do_without(config, *logs, restarts, round, hostname, warn, disk);
    if (output) output->bytes = bytes;
    if (output && wanted && *events_in != logs->run_directory()) {
      *events_in = logs->run_directory();
      output->events = logs->create(kEventsFile, disk);
    }
    return output;
  };
  return RoundInputs{config_,
                     environment_,
                     logger_,
                     std::move(facts),
                     open_output,
                     log_options_.place(),
                     disks_.logs,
                     hostname_,
                     consoles_,
                     started_,
                     descriptor_limit_,
                     orphans_,
                     events_,
                     devices_,
                     cgroup_,
                     warm_,
                     links_,
                     spares_,
                     exiting_,
                     {},
                     {},
                     {}};
}

asio::awaitable<void> RunContext::console_is_written(TimePoint deadline) const {
  co_await consoles_.err->written(deadline);
  consoles_.err->erase_line();
}

void RunContext::stop_waiting_workers() const {
  if (warm_ != nullptr) warm_->stop_groups();
  if (spares_ != nullptr) spares_->pause_groups(true);
}

void RunContext::continue_waiting_workers(Duration stopped) const {
  if (warm_ != nullptr) warm_->continue_groups(stopped);
  if (spares_ != nullptr) spares_->pause_groups(false);
}

asio::awaitable<void> RunContext::end_waiting_workers() {
  if (warm_ != nullptr) {
    co_await warm_->end();
  }
  if (spares_ != nullptr) {
    co_await spares_->end();
  }
  co_await exiting_->wait_until_gone();
}

int RunContext::fail(const std::string& code, const Error& error) {
  logger_.error(error_line(code, error.sentence));
  leave_own_error(error.sentence);
  if (logs_) logs_->discard_if_empty();
  return exit_code_of(error.kind);
}

OwnError RunContext::fail_to_spawn(const SpawnFailed& failure, Rank first_rank) {
  leave_own_error(failure.error.sentence);
  const int exit_code = exit_code_of(failure.error.kind);
  if (failure.what == SpawnFailed::What::kLogFiles) {
    return {"START", failure.error.sentence, exit_code};
  }
  const Rank rank(first_rank.value() + failure.rank.value());
  return {"EXEC", spawn_failure_text(rank, hostname_, failure.error), exit_code};
}

void RunContext::log_unkillable(const RoundResult& result) {
  for (const Unkillable& left : result.unkillable) {
    logger_.log(left.left_behind.empty() ? spdlog::level::err : spdlog::level::warn,
                unkillable_line(left));
  }
}

void RunContext::log_shared_names() const {
  const SharedNames::Left left = shared_names_.left();
  if (!left.names.empty()) logger_.info(shared_names_line(left.names, left.bytes));
}

void RunContext::leave_error_file(const std::string& text) {
  const std::string path = value_or(environment_, "TORCHELASTIC_ERROR_FILE", "");
  if (path.empty() || text.empty()) return;
  const auto left = std::make_shared<Result<void>>();
  disks_.error_file.post([left, path, text] { *left = leave_file(path, text); },
                         [this, left] {
                           if (*left) return;
                           logger_.warn(warning_line("ERROR-FILE", left->error().sentence));
                         });
}

void RunContext::leave_own_error(const std::string& sentence) {
  leave_error_file(own_error_file(sentence, epoch_seconds()));
}

void RunContext::pass_error_up(const RoundResult& result) {
  if (!result.failure || !result.error_json) return;
  const ExitStatus& status = result.failure->status;
  const int code = status.by_signal() ? -status.signal() : status.code();
  leave_error_file(with_error_code(*result.error_json, code).value_or(""));
}

}  // namespace ddprun
