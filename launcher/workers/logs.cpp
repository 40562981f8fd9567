#include "launcher/usage.hpp"
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

/// A filter copies lines of tee'd streams into a file: without either it would silently do nothing.
Result<void> check_filters(const std::vector<std::string>& filters, const Origin& option,
                           Streams stream, const LogConfig& log, int workers) {
  if (filters.empty()) return {};
  if (log.dir == kNoFiles) {
    return usage(option.name + " writes a file, but --log-dir=/dev/null means none");
  }
  if (tees_any(log.tee, stream, workers)) return {};
  return usage(option.name + " looks at tee'd lines only, and no worker's stream is tee'd: add " +
               (stream == Streams::kStdout ? "--tee=1" : "--tee=2") + " or --tee=3");
}

}  // namespace

Result<LogConfig> configure_logs(const LogRequest& request, int workers, const Machine& machine) {
  LogConfig log = request.config;
  auto directory = choose_directory(request.dir, machine);
  if (!directory) return directory.error();
  log.dir = std::move(*directory);
  auto checked =
      check_filters(log.stdout_filters, request.stdout_filters, Streams::kStdout, log, workers);
  if (checked) {
    checked =
        check_filters(log.stderr_filters, request.stderr_filters, Streams::kStderr, log, workers);
  }
  if (!checked) return checked.error();
  return log;
}

}  // namespace ddprun
