#include "agent/run_context.hpp"

#include <spdlog/logger.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "agent/core/error_file.hpp"
#include "agent/core/report.hpp"
#include "agent/file_text.hpp"
#include "agent/log.hpp"

namespace ddprun {

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

}  // namespace

const char* start_code_of(ErrorKind kind) {
  return kind == ErrorKind::kPortTaken ? "NET-PORT" : "START";
}

RunContext::RunContext(AgentInputs inputs)
    : config_(inputs.config),
      environment_(inputs.environment),
      logger_(inputs.logger),
      consoles_(std::move(inputs.consoles)),
      logs_(inputs.logs),
      descriptor_limit_(inputs.descriptor_limit),
      orphans_(inputs.orphans),
      hostname_(this_host()),
      started_(Clock::now()) {}

Result<void> RunContext::open_logs() {
  const LogTreeOptions options{config_.log.dir, value_or(environment_, "TMPDIR", ""),
                               config_.run_id};
  auto logs = LogTree::open(options);
  if (!logs) return logs.error();
  logs_ = std::make_unique<LogTree>(std::move(*logs));
  return {};
}

Result<RoundInputs> RunContext::prepare(RoundFacts facts) {
  auto attempt = logs_->attempt(facts.restarts, facts.round, config_.workers);
  if (!attempt) return attempt.error();
  const Warn warn = [this](const std::string& sentence) {
    logger_.warn("ddprun: warning [LOG] " + sentence);
  };
  auto output = open_output_context(config_, std::move(*attempt), hostname_, warn);
  if (!output) return output.error();
  return RoundInputs{config_,          environment_,       logger_,
                     std::move(facts), std::move(*output), consoles_,
                     started_,         descriptor_limit_,  orphans_};
}

int RunContext::fail(const std::string& code, const Error& error) {
  logger_.error(error_line(code, error.sentence));
  leave_own_error(error.sentence);
  if (logs_) logs_->discard_if_empty();
  return exit_code_of(error.kind);
}

int RunContext::fail_to_spawn(const SpawnFailed& failure, Rank first_rank) {
  const Rank rank(first_rank.value() + failure.rank.value());
  logger_.error(spawn_failure_line(rank, hostname_, failure.error.sentence));
  leave_own_error(failure.error.sentence);
  return exit_code_of(failure.error.kind);
}

void RunContext::tell_unkillable(const RoundResult& result) {
  for (const ExitRecord& record : result.unkillable) {
    logger_.error(unkillable_line(record, hostname_));
  }
}

void RunContext::leave_error_file(const std::string& text) {
  const std::string path = value_or(environment_, "TORCHELASTIC_ERROR_FILE", "");
  if (path.empty() || text.empty()) return;
  const auto written = leave_file(path, text);
  if (!written) logger_.warn(error_file_warning(written.error().sentence));
}

void RunContext::leave_own_error(const std::string& sentence) {
  leave_error_file(own_error_file(sentence, epoch_seconds()));
}

void RunContext::pass_error_up(const ExitRecord& record) {
  if (!record.error_json) return;
  const ExitStatus& status = record.status;
  const int code = status.by_signal() ? -status.signal() : status.code();
  leave_error_file(with_error_code(*record.error_json, code).value_or(""));
}

}  // namespace ddprun
