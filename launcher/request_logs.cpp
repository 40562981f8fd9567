#include <set>
#include <string>

#include "base/limits.hpp"
#include "launcher/options/values.hpp"
#include "launcher/request_parts.hpp"
#include "launcher/usage.hpp"

namespace ddprun {
namespace {

constexpr std::uint64_t kLogBytesMin = 4 * 1024 * 1024;  // so that the tail has more than 1 MiB
constexpr const char* kDefaultPrefix = "[${role_name}${local_rank}]:";

std::optional<Streams> parse_mask(const std::string& text) {
  if (text.size() != 1 || text[0] < '0' || text[0] > '3') return std::nullopt;
  return static_cast<Streams>(text[0] - '0');
}

/// Digits only: no sign and no blanks, as in torchrun's pattern.
std::optional<LocalRank> parse_local_rank(std::string_view text) {
  constexpr std::size_t kDigitsMax = 6;
  const auto number = parse_digits(text);
  if (!number || text.size() > kDigitsMax) return std::nullopt;
  return LocalRank(static_cast<int>(*number));
}

Result<StreamChoice> parse_stream_choice(const Origin& origin) {
  if (auto choice = parse_streams(origin.text)) return *choice;
  return usage(
      origin.quoted() +
      " is neither 0, 1, 2, 3 (none, stdout, stderr, both) nor RANK:MASK,... such as 0:3,1:2");
}

Result<std::optional<std::set<LocalRank>>> parse_console_ranks(const Origin& origin) {
  std::optional<std::set<LocalRank>> ranks;
  if (origin.text.empty()) return ranks;
  ranks.emplace();
  for (const std::string& part : split_list(origin.text)) {
    const auto number = parse_integer(part);
    if (!number) return usage(origin.quoted() + " is not a list of local ranks such as 0,1");
    if (*number >= 0 && *number < kWorkersPerNodeMax) {
      ranks->insert(LocalRank(static_cast<int>(*number)));
    }
  }
  return ranks;
}

Result<std::uint64_t> parse_log_max(const Origin& origin) {
  if (origin.text.empty()) return std::uint64_t{0};
  const auto bytes = parse_size(origin.text);
  if (bytes && *bytes >= kLogBytesMin) return *bytes;
  return usage(origin.quoted() + " is not a size of at least 4M, such as 64M or 1G");
}

/// One of the option's choices, or empty.
Console parse_console(const std::string& text) {
  if (text == "raw") return Console::kRaw;
  if (text == "prefix") return Console::kPrefix;
  if (text == "rank0") return Console::kRank0;
  return text == "quoted" ? Console::kQuoted : Console::kChosen;
}

Result<Verbosity> parse_verbosity(const Settings& settings) {
  const Origin quiet = settings.origin(OptionId::kQuiet);
  const Origin verbose = settings.origin(OptionId::kVerbose);
  if (quiet.given && verbose.given && quiet.source == verbose.source) {
    return usage(quiet.name + " and " + verbose.name +
                 " exclude each other: leave one of them out");
  }
  if (quiet.given && (!verbose.given || quiet.source > verbose.source)) return Verbosity::kQuiet;
  return verbose.given ? Verbosity::kVerbose : Verbosity::kUsual;
}

std::string choose_prefix(const Settings& settings, const Environment& environment) {
  const std::string& text = settings.text(OptionId::kLogLinePrefixTemplate);
  if (!text.empty()) return text;
  const std::string variable(spec_of(OptionId::kLogLinePrefixTemplate).fallback);
  const auto inherited = value_or(environment, variable, "");
  return inherited.empty() ? kDefaultPrefix : inherited;
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
    const auto rank = parse_local_rank(std::string_view(part).substr(0, colon));
    const auto mask = parse_mask(part.substr(colon + 1));
    if (!rank || !mask) return std::nullopt;
    choice.named[*rank] = *mask;
  }
  return choice;
}

Result<LogRequest> parse_logs(const Settings& settings, const Environment& environment) {
  const Origin layout = settings.origin(OptionId::kLogsSpecs);
  if (layout.given && layout.text != "default") {
    return usage(layout.shown() +
                 " names a Python class, which ddprun does not run: --log-dir, --redirects and "
                 "--tee choose the files, as default does");
  }
  LogRequest request;
  request.dir = settings.origin(OptionId::kLogDir);
  request.stdout_filters = settings.origin(OptionId::kDuplicateStdoutFilters);
  request.stderr_filters = settings.origin(OptionId::kDuplicateStderrFilters);
  request.console_ranks = settings.origin(OptionId::kLocalRanksFilter);
  auto redirects = parse_stream_choice(settings.origin(OptionId::kRedirects));
  if (!redirects) return redirects.error();
  auto tee = parse_stream_choice(settings.origin(OptionId::kTee));
  if (!tee) return tee.error();
  auto ranks = parse_console_ranks(request.console_ranks);
  if (!ranks) return ranks.error();
  auto bytes_max = parse_log_max(settings.origin(OptionId::kLogMax));
  if (!bytes_max) return bytes_max.error();
  auto verbosity = parse_verbosity(settings);
  if (!verbosity) return verbosity.error();
  request.config = {request.dir.text,
                    std::move(*redirects),
                    std::move(*tee),
                    std::move(*ranks),
                    choose_prefix(settings, environment),
                    split_escaped_list(request.stdout_filters.text),
                    split_escaped_list(request.stderr_filters.text),
                    parse_console(settings.text(OptionId::kConsole)),
                    *bytes_max};
  request.config.verbosity = *verbosity;
  return request;
}

}  // namespace ddprun
