#include "agent/agent.hpp"

#include <spdlog/logger.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "agent/core/error_file.hpp"
#include "agent/core/limits.hpp"
#include "agent/core/report.hpp"
#include "agent/core/verdict.hpp"
#include "agent/file_text.hpp"
#include "agent/log.hpp"
#include "base/assert.hpp"
#include "base/version.hpp"

namespace ddprun {

namespace asio = boost::asio;

namespace {

std::string this_host() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::int64_t epoch_seconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

const char* code_of(ErrorKind kind) {
  return kind == ErrorKind::kPortTaken ? "NET-PORT" : "START";
}

}  // namespace

Agent::Agent(asio::any_io_executor executor, AgentInputs inputs)
    : executor_(executor),
      config_(inputs.config),
      environment_(inputs.environment),
      logger_(inputs.logger),
      consoles_(std::move(inputs.consoles)),
      hostname_(this_host()),
      started_(Clock::now()),
      budget_{RestartCount(0), config_.max_restarts} {}

asio::awaitable<int> Agent::run() {
  const LogTreeOptions options{config_.log.dir, value_or(environment_, "TMPDIR", ""),
                               config_.run_id};
  auto logs = LogTree::open(options);
  if (!logs) co_return fail("START", logs.error());
  logs_ = std::make_unique<LogTree>(std::move(*logs));
  Next next = Next::kAnotherRound;
  while (next == Next::kAnotherRound) {
    auto store = RoundStore::open(executor_, config_, make_part_logger(logger_, "STORE"));
    if (!store) co_return fail(code_of(store.error().kind), store.error());
    auto inputs = prepare(*store);
    if (!inputs) co_return fail("START", inputs.error());
    const RoundResult result = co_await run_round(std::move(*inputs));
    store->close();
    next = after(result);
  }
  co_return exit_code_;
}

Result<RoundInputs> Agent::prepare(const RoundStore& store) {
  auto attempt = logs_->attempt(budget_.used, round_, config_.workers);
  if (!attempt) return attempt.error();
  const Warn warn = [this](const std::string& sentence) {
    logger_.warn("ddprun: warning [LOG] " + sentence);
  };
  auto output = open_output_context(config_.log, std::move(*attempt), hostname_, warn);
  if (!output) return output.error();
  RoundFacts facts;
  facts.round = round_;
  facts.restarts = budget_.used;
  facts.world = facts.role_world = WorldSize(config_.workers);
  facts.master_addr = config_.master_addr;
  facts.master_port = store.port();
  if (round_ == Round(1)) tell_start(store);
  return RoundInputs{config_,   environment_, logger_, facts, std::move(*output),
                     consoles_, started_};
}

asio::awaitable<RoundResult> Agent::run_round(RoundInputs inputs) {
  runner_ = std::make_shared<RoundRunner>(executor_, std::move(inputs));
  if (pending_stop_ != 0) runner_->request_stop(pending_stop_);
  RoundResult result = co_await runner_->run();
  runner_ = nullptr;
  co_return result;
}

void Agent::request_stop(int signal) {
  if (runner_) return runner_->request_stop(signal);
  pending_stop_ = signal;
}

void Agent::pass_on(int signal) {
  if (runner_) runner_->pass_on(signal);
}

Agent::Next Agent::after(const RoundResult& result) {
  switch (result.state) {
    case GroupState::kSucceeded:
      logger_.info(done_line(config_.workers, Clock::now() - started_, budget_.used));
      logs_->discard();
      exit_code_ = 0;
      return Next::kEnd;
    case GroupState::kStopped:
      finish_stopped(result);
      return Next::kEnd;
    default:
      return after_failure(result);
  }
}

Agent::Next Agent::after_failure(const RoundResult& result) {
  RoundFailure failure = RoundFailure::kWorkerFailed;
  if (result.spawn_failure) failure = RoundFailure::kSpawnFailed;
  if (!result.unkillable.empty()) failure = RoundFailure::kUnkillable;
  const RestartDecision decision = decide_restart(budget_, failure);
  if (decision.next == RestartDecision::Next::kGiveUp) {
    finish_failed(result, decision.reason);
    return Next::kEnd;
  }
  const ExitRecord* first = first_failure(result.exits);
  DDPRUN_ASSERT(first != nullptr);
  if (result.failure_told == RoundResult::Told::kNo) {
    logger_.warn(death_line(*first, hostname_, 0));
  }
  budget_.used = decision.used;
  round_ = Round(round_.value() + 1);
  logger_.info(restart_line(decision, round_));
  return Next::kAnotherRound;
}

void Agent::finish_stopped(const RoundResult& result) {
  tell_unkillable(result);
  const int workers = static_cast<int>(result.exits.size());
  logger_.info(stopped_line(result.stop_signal, workers, result.killed, result.stop_took));
  leave_error_file(
      own_error_file("ddprun was stopped by " + signal_name(result.stop_signal), epoch_seconds()));
  logs_->discard_if_empty();
  exit_code_ = 128 + result.stop_signal;
}

void Agent::finish_failed(const RoundResult& result, const std::string& why_no_restart) {
  tell_unkillable(result);
  if (result.spawn_failure) {
    const SpawnFailed& failure = *result.spawn_failure;
    const std::string line =
        spawn_failure_line(Rank(failure.rank.value()), hostname_, failure.error.sentence);
    logger_.error(line);
    leave_error_file(own_error_file(failure.error.sentence, epoch_seconds()));
    logs_->discard_if_empty();
    exit_code_ = exit_code_of(failure.error.kind);
    return;
  }
  const ExitRecord* first = first_failure(result.exits);
  DDPRUN_ASSERT(first != nullptr);
  FailureFacts facts;
  facts.first = *first;
  facts.host = hostname_;
  facts.round = round_;
  facts.stopped = result.stopped;
  facts.killed = result.killed;
  facts.stop_took = result.stop_took;
  if (budget_.max > 0 || !result.unkillable.empty()) facts.next = why_no_restart;
  if (first->error_json) {
    const int code = first->status.by_signal() ? -first->status.signal() : first->status.code();
    leave_error_file(with_error_code(*first->error_json, code).value_or(""));
  }
  logger_.error(failure_report(facts));
  logs_->discard_if_empty();
  exit_code_ = first->status.shell_code();
}

void Agent::tell_unkillable(const RoundResult& result) {
  for (const ExitRecord& record : result.unkillable) {
    logger_.error(unkillable_line(record, hostname_));
  }
}

void Agent::tell_start(const RoundStore& store) {
  StartFacts facts;
  facts.version = kVersion;
  facts.run = config_.run_id;
  facts.workers = config_.workers;
  facts.store = store.served_at();
  facts.log_dir = config_.log.dir.empty() ? "" : logs_->run_directory();
  facts.shutdown_timeout = config_.shutdown_timeout;
  facts.max_restarts = config_.max_restarts;
  logger_.info(start_line(facts));
}

int Agent::fail(const std::string& code, const Error& error) {
  logger_.error(error_line(code, error.sentence));
  leave_error_file(own_error_file(error.sentence, epoch_seconds()));
  if (logs_) logs_->discard_if_empty();
  return exit_code_of(error.kind);
}

void Agent::leave_error_file(const std::string& text) {
  const std::string path = value_or(environment_, "TORCHELASTIC_ERROR_FILE", "");
  if (path.empty() || text.empty()) return;
  const auto written = write_file(path, text);
  if (!written) logger_.warn("ddprun: warning [ERROR-FILE] " + written.error().sentence);
}

}  // namespace ddprun
