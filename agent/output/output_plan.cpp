#include "agent/output/output_plan.hpp"

#include <cstdint>
#include <utility>

#include "agent/output/prefixed_lines.hpp"
#include "base/macros.hpp"

namespace ddprun {

namespace {

// Each log file of a stdout that --console=rank0 hides, without --log-max: see LogRing.
constexpr std::uint64_t kHiddenBytesMax = 16 * 1024 * 1024;

const Rank kUnknownRank(-1);

Result<std::shared_ptr<FilterLog>> open_filter(const std::vector<std::string>& texts,
                                               const AttemptLogs& logs, const std::string& path,
                                               const DiskThread& disk, std::uint64_t bytes_max) {
  if (texts.empty() || path.empty()) return std::shared_ptr<FilterLog>();
  auto file = logs.create(path, disk, bytes_max);
  if (!file) return file.error();
  return std::make_shared<FilterLog>(FilterLog{texts, *file});
}

StreamWish::Show show_of(Console console, Rank rank, Streams stream) {
  using Show = StreamWish::Show;
  const bool rank0 = console == Console::kRank0;
  if (console != Console::kPrefix && !rank0) return Show::kAsItIs;
  if (!rank0 || stream == Streams::kStderr) return Show::kLabelled;
  return rank == Rank(0) ? Show::kPassed : Show::kInFile;
}

/// A user who names a directory, and no streams, finds all output there, besides where it is shown.
bool keeps_all(const LogConfig& config) {
  const bool names_streams = config.redirects.any() || config.tee.any();
  const bool is_plain = config.as_torchrun || config.console == Console::kRaw;
  return !config.dir.empty() && !names_streams && !is_plain;
}

StreamWish wish_of(const LogConfig& config, const AttemptLogs& logs, LocalRank rank, Rank global,
                   Streams stream) {
  StreamWish wish;
  wish.show = show_of(config.console, global, stream);
  wish.redirected = has(config.redirects.of(rank), stream);
  wish.teed = has(config.tee.of(rank), stream);
  wish.shown = rank == kNoRank || !config.console_ranks || config.console_ranks->contains(rank);
  wish.quoted = config.console != Console::kRaw;
  wish.files = logs.files();
  wish.kept = keeps_all(config);
  wish.limited = config.bytes_max != 0;
  return wish;
}

Route route_for(const LogConfig& config, const AttemptLogs& logs, LocalRank rank, Rank global,
                Streams stream) {
  const auto as_stream = stream == Streams::kStdout ? Stream::kStdout : Stream::kStderr;
  return route_of(as_stream, wish_of(config, logs, rank, global, stream));
}

/// Whether it is a stream that no option names a file for: it may get one all the same.
bool may_be_hidden(const LogConfig& config, LocalRank rank, Streams stream) {
  const bool named = has(config.redirects.of(rank), stream) || has(config.tee.of(rank), stream);
  return config.console == Console::kRank0 && stream == Streams::kStdout && !named;
}

Result<std::shared_ptr<LogFile>> open_log(bool is_wanted, const AttemptLogs& logs,
                                          const std::string& path, const DiskThread& disk,
                                          std::uint64_t bytes_max) {
  if (!is_wanted) return std::shared_ptr<LogFile>();
  return logs.create(path, disk, bytes_max);
}

Result<WorkerFiles> open_files(const LogConfig& config, const AttemptLogs& logs, LocalRank rank,
                               const DiskThread& disk) {
  // Which of them is rank 0 is not known yet: its file may stay empty.
  const bool kept = logs.files() && keeps_all(config);
  const Route out_route = route_for(config, logs, rank, kUnknownRank, Streams::kStdout);
  const bool unasked = config.dir.empty() && may_be_hidden(config, rank, Streams::kStdout);
  auto out = open_log(kept || is_logged(out_route), logs, logs.stdout_log(rank), disk,
                      unasked && config.bytes_max == 0 ? kHiddenBytesMax : config.bytes_max);
  if (!out) return out.error();
  const Route err_route = route_for(config, logs, rank, kUnknownRank, Streams::kStderr);
  auto err =
      open_log(kept || is_logged(err_route), logs, logs.stderr_log(rank), disk, config.bytes_max);
  if (!err) return err.error();
  return WorkerFiles{std::move(*out), std::move(*err)};
}

WorkerOutputPlan plan_streams(const LogConfig& config, const AttemptLogs& logs,
                              const WorkerFiles& files, LocalRank rank, Rank global) {
  WorkerOutputPlan plan;
  plan.out.route = route_for(config, logs, rank, global, Streams::kStdout);
  plan.out.file = logs.stdout_log(rank);
  plan.out.log = files.out;
  plan.out.copied = plan.err.copied = logs.files() && keeps_all(config);
  plan.out.like_console = may_be_hidden(config, rank, Streams::kStdout);
  plan.err.route = route_for(config, logs, rank, global, Streams::kStderr);
  plan.err.file = logs.stderr_log(rank);
  plan.err.log = files.err;
  return plan;
}

// Files that no option asks for are one to the user: what is wrong with them is said once.
Warn warn_of(const LogConfig& config, const OutputContext& context) {
  const bool asked = config.redirects.any() || config.tee.any();
  if (config.console != Console::kRank0 || asked || !context.warn) return context.warn;
  return [warn = context.warn, said = context.said_full](const std::string& sentence) {
    if (!std::exchange(*said, true)) warn(sentence);
  };
}

}  // namespace

Route route_of(Stream stream, const StreamWish& wish) {
  const Route to_file = wish.limited ? Route::kLog : Route::kFile;
  if (wish.files && wish.teed) return wish.shown ? Route::kTee : to_file;
  if (wish.files && wish.redirected) return to_file;
  using Show = StreamWish::Show;
  const bool kept = wish.files && wish.kept;
  const bool inherits = (stream == Stream::kStdout && !kept) || !wish.quoted;
  if (!wish.shown && kept) return to_file;
  if (!wish.shown) return inherits ? Route::kDiscard : Route::kKeep;
  switch (wish.show) {
    case Show::kAsItIs:
      break;
    case Show::kPassed:
      return Route::kPass;
    case Show::kLabelled:
      return Route::kLabel;
    case Show::kInFile:
      return wish.files ? Route::kLog : Route::kLabel;
  }
  return inherits ? Route::kInherit : Route::kPass;
}

std::string line_prefix(const std::string& text, const LinePrefixMacros& macros) {
  return substitute(text, {{"role_name", macros.role_name},
                           {"local_rank", std::to_string(macros.local_rank)},
                           {"rank", std::to_string(macros.rank)},
                           {"hostname", macros.hostname}});
}

Result<OutputContext> open_output_context(const LaunchConfig& config, AttemptLogs logs,
                                          std::string hostname, Warn warn, const DiskThread& disk) {
  const LogConfig& log = config.log;
  auto out_filter =
      open_filter(log.stdout_filters, logs, logs.filtered_stdout_log(), disk, log.bytes_max);
  if (!out_filter) return out_filter.error();
  auto err_filter =
      open_filter(log.stderr_filters, logs, logs.filtered_stderr_log(), disk, log.bytes_max);
  if (!err_filter) return err_filter.error();
  std::vector<WorkerFiles> files;
  for (int rank = 0; rank < config.workers.count; ++rank) {
    auto of_worker = open_files(log, logs, LocalRank(rank), disk);
    if (!of_worker) return of_worker.error();
    files.push_back(std::move(*of_worker));
  }
  return OutputContext{.logs = std::move(logs),
                       .files = std::move(files),
                       .out_filter = *out_filter,
                       .err_filter = *err_filter,
                       .hostname = std::move(hostname),
                       .warn = std::move(warn)};
}

Result<OutputContext> open_or_do_without(const LaunchConfig& config, LogTree& logs,
                                         RestartCount restarts, Round round,
                                         const std::string& hostname, const Warn& warn,
                                         const DiskThread& disk) {
  const bool again = logs.has_attempt();
  auto attempt = logs.attempt(restarts, round, config.workers.count);
  Error why;
  if (attempt) {
    auto output = open_output_context(config, std::move(*attempt), hostname, warn, disk);
    if (output && !again) output->foreign_directory = logs.foreign_sentence();
    if (output) return output;
    why = output.error();
  } else {
    why = attempt.error();
  }
  if (!again && config.log.asks_for_files()) return why;
  auto without = open_output_context(config, AttemptLogs(), hostname, warn, disk);
  if (without) without->no_files = why.sentence;
  return without;
}

WorkerOutputPlan plan_output(const LaunchConfig& config, const OutputContext& context,
                             LocalRank local_rank, Rank rank) {
  const WorkerFiles& files = context.files.at(static_cast<std::size_t>(local_rank.value()));
  WorkerOutputPlan plan = plan_streams(config.log, context.logs, files, local_rank, rank);
  plan.out.filter = context.out_filter;
  plan.err.filter = context.err_filter;
  plan.prefix = line_prefix(config.log.prefix_template, {config.workers.role, local_rank.value(),
                                                         rank.value(), context.hostname});
  const std::string host = context.hostname.substr(0, context.hostname.find('.'));
  plan.label = rank_label(host, rank.value(), config.log.coloured);
  plan.label_columns = static_cast<int>(rank_label(host, rank.value(), false).size());
  plan.warn = warn_of(config.log, context);
  plan.bytes = context.bytes;
  return plan;
}

SpareOutput open_spare_output(const LaunchConfig& config, LogTree& logs, int spare,
                              const DiskThread& disk) {
  SpareOutput output;
  auto own = logs.spare(spare);
  Result<WorkerFiles> files = own ? open_files(config.log, *own, kNoRank, disk) : own.error();
  if (!files) {
    output.no_files = files.error().sentence;
    own = AttemptLogs();
    files = WorkerFiles();
  }
  output.plan = plan_streams(config.log, *own, *files, kNoRank, kUnknownRank);
  output.plan.prefix = "[spare " + std::to_string(spare) + "]:";
  output.plan.label = "spare " + std::to_string(spare) + "| ";
  output.error_file = own->error_file(kNoRank);
  return output;
}

std::string unseen_file(const StreamPlan& plan) {
  return plan.route == Route::kFile ? plan.file : "";
}

std::string log_of(const StreamPlan& plan) {
  return plan.copied || is_logged(plan.route) ? plan.file : "";
}

std::string log_to_name(const WorkerOutputPlan& plan) {
  const std::string err = log_of(plan.err);
  return err.empty() ? log_of(plan.out) : err;
}

}  // namespace ddprun
