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
    : in_(std::move(inputs)),
      exiting_(std::make_shared<ExitingWorkers>(in_.disks.logs.executor())),
      devices_({in_.disks.logs.executor(), in_.environment, in_.logger, in_.events, in_.nonce,
                visible_devices_of_workers(in_.config.workers, in_.environment),
                in_.consoles.waits}),
      log_options_{in_.config.log.dir, value_or(in_.environment, "TMPDIR", ""), in_.config.run_id},
      hostname_(this_host()),
      output_bytes_(std::make_shared<std::uint64_t>(0)),
      events_in_(std::make_shared<std::string>()),
      started_(Clock::now()),
      round_over_(started_) {
  if (in_.config.torch_events) {
    torch_events_ = std::make_unique<TorchEvents>(in_.config, hostname_);
    in_.events.observe(this, [this](const RunEvent& event, Duration) {
      log_lines(torch_events_->take(event, wall_time()));
    });
  }
  if (in_.config.stopping.spares == 0) return;
  spares_ = std::make_shared<Spares>(
      in_.disks.logs.executor(),
      SpareInputs{in_.config, in_.environment, in_.logger, in_.events, in_.orphans, in_.disks.logs,
                  in_.logs, in_.consoles, links_, in_.nonce, in_.descriptor_limit, in_.cgroup,
                  output_bytes_});
}

asio::awaitable<Result<void>> RunContext::open_logs() {
  if (!in_.config.rendezvous) {  // nothing comes between this and the first round
    in_.logs = std::make_shared<LogTree>(LogTree::open_later(log_options_));
    co_return Result<void>();
  }
  std::function<Result<LogTree>()> open = [options = log_options_] {
    return LogTree::open(options);
  };
  // No deadline: nothing was started, and a stop signal ends the wait.
  const WaitNote note(in_.disks.logs.executor(), in_.logger,
                      "the log directory " + log_options_.place(), TimePoint::max());
  auto logs = co_await run_on<Result<LogTree>>(in_.disks.logs, std::move(open), TimePoint::max());
  if (!*logs) co_return logs->error();
  in_.logs = std::make_shared<LogTree>(std::move(**logs));
  co_return Result<void>();
}

asio::awaitable<Result<void>> RunContext::open_timers() {
  if (!in_.config.timer_pipe) co_return Result<void>();
  std::function<Result<OpenPipe>()> open = [wanted = *in_.config.timer_pipe, nonce = in_.nonce] {
    Result<std::string> own = private_directory();
    if (own) *own += "/" + std::to_string(::getpid()) + "-" + nonce + kTimersSuffix;
    return open_pipe(wanted, own);
  };
  const WaitNote note(in_.disks.logs.executor(), in_.logger, "the pipe for timers of workers",
                      TimePoint::max());
  auto opened =
      co_await run_on<Result<OpenPipe>>(in_.disks.logs, std::move(open), TimePoint::max());
  const Result<OpenPipe>& pipe = *opened;
  if (!pipe) {
    co_return Error(pipe.error().kind, pipe.error().sentence +
                                           "; unset TORCHELASTIC_ENABLE_FILE_TIMER to run without");
  }
  if (!pipe->note.empty()) in_.logger.info(note_line("TIMER", pipe->note));
  links_->read_timers(in_.disks.logs.executor(), *pipe, in_.logger);
  co_return Result<void>();
}

void RunContext::log_lines(const TorchEvents::Lines& lines) {
  for (const std::string& line : lines) in_.logger.warn(line);  // asked for, also with --quiet
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
  in_.disks.logs.post([timers] { ::unlink(timers.c_str()); }, [] {});
}

RoundInputs RunContext::prepare(RoundFacts facts) {
  facts.nonce = in_.nonce;
  const Warn warn = [this](const std::string& sentence) {
    in_.logger.warn(warning_line("LOG", sentence));
  };
  const auto open_output = [logs = in_.logs, config = in_.config, restarts = facts.restarts,
                            round = facts.round, hostname = hostname_, warn, disk = in_.disks.logs,
                            wanted = in_.events.wants_file(), bytes = output_bytes_,
                            events_in = events_in_]() -> Result<OutputContext> {
    auto output = open_or_do_without(config, *logs, restarts, round, hostname, warn, disk);
    if (output) output->bytes = bytes;
    if (output && wanted && *events_in != logs->run_directory()) {
      *events_in = logs->run_directory();
      output->events = logs->create(kEventsFile, disk);
    }
    return output;
  };
  return RoundInputs{in_.config,
                     in_.environment,
                     in_.logger,
                     std::move(facts),
                     open_output,
                     log_options_.place(),
                     in_.disks.logs,
                     hostname_,
                     in_.consoles,
                     started_,
                     in_.descriptor_limit,
                     in_.orphans,
                     in_.events,
                     devices_,
                     in_.cgroup,
                     in_.warm,
                     links_,
                     spares_,
                     exiting_,
                     {},
                     {},
                     {}};
}

asio::awaitable<void> RunContext::console_is_written(TimePoint deadline) const {
  co_await in_.consoles.err->written(deadline);
  in_.consoles.err->erase_line();
}

void RunContext::stop_waiting_workers() const {
  if (in_.warm != nullptr) in_.warm->stop_groups();
  if (spares_ != nullptr) spares_->pause_groups(true);
}

void RunContext::continue_waiting_workers(Duration stopped) const {
  if (in_.warm != nullptr) in_.warm->continue_groups(stopped);
  if (spares_ != nullptr) spares_->pause_groups(false);
}

asio::awaitable<void> RunContext::end_waiting_workers() {
  if (in_.warm != nullptr) {
    co_await in_.warm->end();
  }
  if (spares_ != nullptr) {
    co_await spares_->end();
  }
  co_await exiting_->wait_until_gone();
}

int RunContext::fail(const std::string& code, const Error& error) {
  in_.logger.error(error_line(code, error.sentence));
  leave_own_error(error.sentence);
  if (in_.logs) in_.logs->discard_if_empty();
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
    in_.logger.log(left.left_behind.empty() ? spdlog::level::err : spdlog::level::warn,
                   unkillable_line(left));
  }
}

void RunContext::log_shared_names() const {
  const SharedNames::Left left = shared_names_.left();
  if (!left.names.empty()) in_.logger.info(shared_names_line(left.names, left.bytes));
}

void RunContext::leave_error_file(const std::string& text) {
  const std::string path = value_or(in_.environment, "TORCHELASTIC_ERROR_FILE", "");
  if (path.empty() || text.empty()) return;
  const auto left = std::make_shared<Result<void>>();
  in_.disks.error_file.post([left, path, text] { *left = leave_file(path, text); },
                            [this, left] {
                              if (*left) return;
                              in_.logger.warn(warning_line("ERROR-FILE", left->error().sentence));
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
