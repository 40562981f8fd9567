#include "agent/output_plan.hpp"

#include <utility>

#include "agent/proc/line_prefix.hpp"

namespace ddprun {

namespace {

Result<std::shared_ptr<FilterLog>> open_filter(const std::vector<std::string>& texts,
                                               const std::string& path) {
  if (texts.empty() || path.empty()) return std::shared_ptr<FilterLog>();
  auto file = LogFile::open(path);
  if (!file) return file.error();
  return std::make_shared<FilterLog>(FilterLog{texts, std::move(*file)});
}

StreamWish wish_of(const LogConfig& config, const AttemptLogs& logs, LocalRank rank,
                   Streams stream) {
  StreamWish wish;
  wish.redirected = has(config.redirects.of(rank), stream);
  wish.teed = has(config.tee.of(rank), stream);
  wish.shown = !config.console_ranks || config.console_ranks->contains(rank);
  wish.quoted = config.console == Console::kQuoted;
  wish.files = logs.files();
  return wish;
}

}  // namespace

Result<OutputContext> open_output_context(const LogConfig& config, AttemptLogs logs,
                                          std::string hostname, Warn warn) {
  auto out_filter = open_filter(config.stdout_filters, logs.filtered_stdout_log());
  if (!out_filter) return out_filter.error();
  auto err_filter = open_filter(config.stderr_filters, logs.filtered_stderr_log());
  if (!err_filter) return err_filter.error();
  return OutputContext{std::move(logs), *out_filter, *err_filter, std::move(hostname),
                       std::move(warn)};
}

WorkerOutputPlan plan_output(const LaunchConfig& config, const OutputContext& context,
                             LocalRank local_rank, Rank rank) {
  const LogConfig& log = config.log;
  WorkerOutputPlan plan;
  plan.out.route =
      route_of(Stream::kStdout, wish_of(log, context.logs, local_rank, Streams::kStdout));
  plan.out.file = context.logs.stdout_log(local_rank);
  plan.out.filter = context.out_filter;
  plan.err.route =
      route_of(Stream::kStderr, wish_of(log, context.logs, local_rank, Streams::kStderr));
  plan.err.file = context.logs.stderr_log(local_rank);
  plan.err.filter = context.err_filter;
  LinePrefixMacros macros;
  macros.role_name = config.role;
  macros.local_rank = local_rank.value();
  macros.rank = rank.value();
  macros.hostname = context.hostname;
  plan.prefix = line_prefix(log.prefix_template, macros);
  plan.warn = context.warn;
  return plan;
}

std::string log_to_name(const WorkerOutputPlan& plan) {
  const auto in_file = [](const StreamPlan& stream) {
    return stream.route == Route::kFile || stream.route == Route::kTee;
  };
  if (in_file(plan.err)) return plan.err.file;
  return in_file(plan.out) ? plan.out.file : "";
}

}  // namespace ddprun
