#include "base/format.hpp"
#include "launcher/options/values.hpp"
#include "launcher/workers/config.hpp"

namespace ddprun {

namespace {

constexpr const char* kNoFiles = "/dev/null";

Result<std::string> choose_directory(const Origin& dir, const Machine& machine) {
  const std::string& text = dir.text;
  if (text.empty() || text == kNoFiles) return text;
  const std::string path = text.starts_with('/') ? text : machine.working_directory() + "/" + text;
  if (machine.is_plain_file(path)) {
    return usage(dir.shown() + " is a file; logs need a directory");
  }
  return path;
}

bool tees_any(const StreamChoice& tee, Streams stream, int workers) {
  for (int rank = 0; rank < workers; ++rank) {
    if (has(tee.of(LocalRank(rank)), stream)) return true;
  }
  return false;
}

/// A filter copies lines of tee'd streams into a file.
Result<void> check_filters(const std::vector<std::string>& filters, const Origin& option,
                           const LogConfig& log) {
  if (filters.empty() || log.dir != kNoFiles) return {};
  return usage(option.name + " writes a file, but --log-dir=/dev/null means none");
}

void note_idle_filters(std::vector<std::string>& notes, const std::vector<std::string>& filters,
                       const Origin& option, Streams stream, const LogConfig& log, int workers) {
  if (filters.empty() || tees_any(log.tee, stream, workers)) return;
  notes.push_back(option.name +
                  " not used: it looks at tee'd lines only, and no worker's stream is tee'd; add " +
                  (stream == Streams::kStdout ? "--tee=1" : "--tee=2") + " or --tee=3");
}

}  // namespace

Result<LogConfig> configure_logs(const LogRequest& request, const Machine& machine) {
  LogConfig log = request.config;
  auto directory = choose_directory(request.dir, machine);
  if (!directory) return directory.error();
  log.dir = std::move(*directory);
  auto checked = check_filters(log.stdout_filters, request.stdout_filters, log);
  if (checked) checked = check_filters(log.stderr_filters, request.stderr_filters, log);
  if (!checked) return checked.error();
  return log;
}

std::vector<std::string> notes_on_logs(const LogRequest& request, const LogConfig& log,
                                       int workers) {
  std::vector<std::string> notes;
  note_idle_filters(notes, log.stdout_filters, request.stdout_filters, Streams::kStdout, log,
                    workers);
  note_idle_filters(notes, log.stderr_filters, request.stderr_filters, Streams::kStderr, log,
                    workers);
  if (log.console_ranks &&
      (log.console_ranks->empty() || log.console_ranks->begin()->value() >= workers)) {
    notes.push_back(request.console_ranks.shown() + " names none of the " +
                    count_text(workers, "worker") +
                    " of this node: the console shows no output of theirs");
  }
  return notes;
}

namespace {

bool arranges_output(const LogConfig& log) {
  return log.redirects.any() || log.tee.any() || log.console_ranks.has_value();
}

bool obeys_sequences(const Environment& environment) {
  return value_or(environment, "TERM", "dumb") != "dumb";
}

}  // namespace

std::string choose_console(LaunchConfig& config, const Environment& environment, bool on_terminal) {
  LogConfig& log = config.log;
  log.redraws = obeys_sequences(environment);
  log.coloured = on_terminal && log.redraws && value_or(environment, "NO_COLOR", "").empty();
  if (log.console != Console::kChosen) return {};
  log.console = Console::kQuoted;
  const int nodes = config.rendezvous ? config.rendezvous->nodes_max : 1;
  if (log.as_torchrun) return "as under torchrun";
  if (!on_terminal) return "stdout and stderr are not one terminal";
  if (nodes == 1 && config.workers.count == 1) return "one rank has the terminal to itself";
  if (arranges_output(log)) return "other options arrange the output";
  log.console = Console::kRank0;
  return "several ranks share a terminal";
}

bool may_draw_waits(const LogConfig& log, const Environment& environment) {
  // A stream that no file takes is inherited then.
  const bool files_of_torchrun =
      log.console == Console::kQuoted && (log.redirects.any() || log.tee.any());
  return log.verbosity != Verbosity::kQuiet && log.console != Console::kRaw && !files_of_torchrun &&
         obeys_sequences(environment);
}

}  // namespace ddprun
