#include "launcher/workers/logs.hpp"

#include <algorithm>

#include "launcher/options/numbers.hpp"
#include "launcher/usage.hpp"
#include "launcher/workers/lists.hpp"

namespace ddprun {
namespace {

using Id = OptionId;

constexpr const char* kNoFiles = "/dev/null";
constexpr const char* kPrefix = "[${role_name}${local_rank}]:";

std::optional<Streams> parse_mask(const std::string& text) {
  if (text.size() != 1 || text[0] < '0' || text[0] > '3') return std::nullopt;
  return static_cast<Streams>(text[0] - '0');
}

/// Digits only: no sign and no blanks, as in torchrun's pattern.
std::optional<LocalRank> parse_rank(const std::string& text) {
  const bool digits =
      !text.empty() && text.size() <= 6 &&
      std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!digits) return std::nullopt;
  return LocalRank(static_cast<int>(*parse_integer(text)));
}

Result<StreamChoice> choose_streams(const Settings& settings, Id id) {
  if (auto choice = parse_streams(settings.text(id))) return *choice;
  return usage(
      settings.named(id) + "='" + settings.text(id) +
      "' is neither 0, 1, 2, 3 (none, stdout, stderr, both) nor RANK:MASK,... such as 0:3,1:2");
}

Result<std::optional<std::set<LocalRank>>> choose_console_ranks(const Settings& settings) {
  const std::string& text = settings.text(Id::kLocalRanksFilter);
  std::optional<std::set<LocalRank>> ranks;
  if (text.empty()) return ranks;
  ranks.emplace();
  for (const std::string& part : split_list(text)) {
    const auto rank = parse_rank(std::string(trimmed(part)));
    if (!rank) {
      return usage(settings.named(Id::kLocalRanksFilter) + "='" + text +
                   "' is not a list of local ranks such as 0,1");
    }
    ranks->insert(*rank);
  }
  return ranks;
}

Result<std::string> choose_directory(const Settings& settings, const Machine& machine) {
  const std::string& text = settings.text(Id::kLogDir);
  if (text.empty() || text == kNoFiles) return text;
  const std::string path = text.starts_with('/') ? text : machine.working_directory() + "/" + text;
  if (machine.is_plain_file(path)) {
    return usage(settings.shown(Id::kLogDir) + " is a file; logs need a directory");
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
Result<std::vector<std::string>> choose_filters(const Settings& settings, Id id, Streams stream,
                                                const LogConfig& log, int workers) {
  auto filters = split_escaped_list(settings.text(id));
  if (filters.empty()) return filters;
  if (log.dir == kNoFiles) {
    return usage(settings.named(id) + " writes a file, but --log-dir=/dev/null means none");
  }
  if (!tees_any(log.tee, stream, workers)) {
    return usage(settings.named(id) +
                 " looks at tee'd lines only, and no worker's stream is tee'd: add " +
                 (stream == Streams::kStdout ? "--tee=1" : "--tee=2") + " or --tee=3");
  }
  return filters;
}

std::string choose_prefix(const Settings& settings, const Environment& environment) {
  const std::string& text = settings.text(Id::kLogLinePrefixTemplate);
  if (!text.empty()) return text;
  const auto inherited = value_or(environment, "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "");
  return inherited.empty() ? kPrefix : inherited;
}

}  // namespace

std::optional<StreamChoice> parse_streams(const std::string& text) {
  StreamChoice choice;
  if (const auto all = parse_mask(text)) {
    choice.all = *all;
    return choice;
  }
  for (const std::string& part : split_list(text)) {
    const auto colon = part.find(':');
    if (colon == std::string::npos) return std::nullopt;
    const auto rank = parse_rank(part.substr(0, colon));
    const auto mask = parse_mask(part.substr(colon + 1));
    if (!rank || !mask) return std::nullopt;
    choice.named[*rank] = *mask;
  }
  return choice;
}

Result<LogConfig> choose_logs(const Settings& settings, int workers, const Machine& machine) {
  LogConfig log;
  auto directory = choose_directory(settings, machine);
  if (!directory) return directory.error();
  log.dir = *directory;
  auto redirects = choose_streams(settings, Id::kRedirects);
  if (!redirects) return redirects.error();
  log.redirects = *redirects;
  auto tee = choose_streams(settings, Id::kTee);
  if (!tee) return tee.error();
  log.tee = *tee;
  auto ranks = choose_console_ranks(settings);
  if (!ranks) return ranks.error();
  log.console_ranks = *ranks;
  log.prefix_template = choose_prefix(settings, machine.environment());
  auto out = choose_filters(settings, Id::kDuplicateStdoutFilters, Streams::kStdout, log, workers);
  if (!out) return out.error();
  log.stdout_filters = *out;
  auto err = choose_filters(settings, Id::kDuplicateStderrFilters, Streams::kStderr, log, workers);
  if (!err) return err.error();
  log.stderr_filters = *err;
  log.console = settings.text(Id::kConsole) == "raw" ? Console::kRaw : Console::kQuoted;
  return log;
}

}  // namespace ddprun
