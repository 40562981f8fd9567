// The options below "Output and logs" in --help.
#include <array>
#include <set>
#include <string>

#include "base/limits.hpp"
#include "launcher/request/rows.hpp"

namespace ddprun {
namespace {

constexpr std::uint64_t kLogBytesMin = 4 * 1024 * 1024;  // so that the tail has more than 1 MiB

template <auto read, auto member>
constexpr auto to_log = put<read, &Request::logs, &LogRequest::config, member>;

/// The origin as well, for sentences of configure_logs().
template <auto read, auto member, auto origin>
Result<void> with_origin(const Given& given, Request& request) {
  request.logs.*origin = given.origin();
  return to_log<read, member>(given, request);
}

bool no_files(const Settings& settings) {
  return settings.text(Id::kLogDir) == "/dev/null";
}

Result<void> check_layout(const Given& given, Request& /*request*/) {
  if (!given.given || given.text == "default") return {};
  return usage(given.shown() +
               " names a Python class, which ddprun does not run: --log-dir, --redirects and "
               "--tee choose the files, as default does");
}

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

/// "0".."3", or RANK:MASK(,RANK:MASK)* where ranks that are not named get 0; nullopt for any other
/// text.
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

Result<StreamChoice> read_streams(const Given& given) {
  if (auto choice = parse_streams(given.text)) return *choice;
  return usage(
      given.quoted() +
      " is neither 0, 1, 2, 3 (none, stdout, stderr, both) nor RANK:MASK,... such as 0:3,1:2");
}

Result<std::optional<std::set<LocalRank>>> read_ranks(const Given& given) {
  std::optional<std::set<LocalRank>> ranks;
  if (given.text.empty()) return ranks;
  ranks.emplace();
  for (const std::string& part : split_list(given.text)) {
    const auto number = parse_integer(part);
    if (!number) return usage(given.quoted() + " is not a list of local ranks such as 0,1");
    if (*number >= 0 && *number < kWorkersPerNodeMax) {
      ranks->insert(LocalRank(static_cast<int>(*number)));
    }
  }
  return ranks;
}

Result<std::uint64_t> read_log_max(const Given& given) {
  if (given.text.empty()) return std::uint64_t{0};
  const auto bytes = parse_size(given.text);
  if (bytes && *bytes >= kLogBytesMin) return *bytes;
  return usage(given.quoted() + " is not a size of at least 4M, such as 64M or 1G");
}

constexpr std::array<std::pair<std::string_view, Console>, 4> kConsoles{
    {{"raw", Console::kRaw},
     {"quoted", Console::kQuoted},
     {"prefix", Console::kPrefix},
     {"rank0", Console::kRank0}}};

/// One of the choices, or empty.
Result<Console> read_console(const Given& given) {
  for (const auto& [name, console] : kConsoles) {
    if (name == given.text) return console;
  }
  return Console::kChosen;
}

/// Of --quiet and --verbose.
Result<Verbosity> read_verbosity(const Given& given) {
  const Origin quiet = given.settings.origin(Id::kQuiet);
  const Origin verbose = given.settings.origin(Id::kVerbose);
  if (quiet.given && verbose.given && quiet.source == verbose.source) {
    return usage(quiet.name + " and " + verbose.name +
                 " exclude each other: leave one of them out");
  }
  if (quiet.given && (!verbose.given || quiet.source > verbose.source)) return Verbosity::kQuiet;
  return verbose.given ? Verbosity::kVerbose : Verbosity::kUsual;
}

Result<std::string> read_prefix(const Given& given) {
  if (!given.text.empty()) return given.text;
  const OptionSpec& option = spec_of(given.id);
  const std::string inherited = value_or(given.environment, std::string(option.fallback), "");
  return inherited.empty() ? std::string(option.unset) : inherited;
}

Result<std::vector<std::string>> read_filters(const Given& given) {
  return split_escaped_list(given.text);
}

constexpr OptionSpec kOutputRows[]{
    {.id = Id::kLogsSpecs,
     .name = "logs-specs",
     .variable = Variable::kNone,
     .metavar = "default",
     .help = "Accepted for torchrun compatibility, where it names a Python class that lays out "
             "log files: only default, that of --log-dir.",
     .for_torchrun = true,
     .take = check_layout},
    {.id = Id::kRedirects,
     .name = "redirects",
     .letter = 'r',
     .variable = Variable::kPet,
     .metavar = "MASK",
     .preset = "0",
     .help = "Streams redirected to files instead of the console: 0 none, 1 stdout, 2 stderr, 3 "
             "both; or per local rank: 0:3,1:2.",
     .take = to_log<read_streams, &LogConfig::redirects>},
    {.id = Id::kTee,
     .name = "tee",
     .letter = 't',
     .variable = Variable::kPet,
     .metavar = "MASK",
     .preset = "0",
     .help = "Streams written to files and, with a prefix per line, to the console. As "
             "--redirects.",
     .take = to_log<read_streams, &LogConfig::tee>},
    {.id = Id::kLocalRanksFilter,
     .name = "local-ranks-filter",
     .variable = Variable::kPet,
     .metavar = "RANKS",
     .help = "Show only these local ranks on the console, for example 0,1.",
     .take = with_origin<read_ranks, &LogConfig::console_ranks, &LogRequest::console_ranks>},
    {.id = Id::kLogMax,
     .name = "log-max",
     .metavar = "SIZE",
     .help = "Size to which each log file is limited, for example 64M or 1G, at least 4M: its "
             "first quarter is kept, and the last three eighths or more in FILE.1 and FILE.2. "
             "Off by default.",
     .unset = "off",
     .take = to_log<read_log_max, &LogConfig::bytes_max>},
    {.id = Id::kLogDir,
     .name = "log-dir",
     .variable = Variable::kPet,
     .metavar = "DIR",
     .help = "Directory of log files: DIR/<run id>_<8>/attempt_<n>/<local rank>/, of all output "
             "without --redirects and --tee. /dev/null: no files.",
     .brief = "directory of log files",
     .yields_to = {{Id::kDuplicateStdoutFilters, no_files},
                   {Id::kDuplicateStderrFilters, no_files}},
     .take = with_origin<as_text, &LogConfig::dir, &LogRequest::dir>},
    {.id = Id::kQuiet,
     .name = "quiet",
     .letter = 'q',
     .value = Value::kFlag,
     .help = "Write nothing but what the workers write, and warnings and errors.",
     .yields_to = {{Id::kVerbose}},
     .take = to_log<read_verbosity, &LogConfig::verbosity>},
    {.id = Id::kVerbose,
     .name = "verbose",
     .letter = 'v',
     .value = Value::kFlag,
     .help = "Write each decision of the start with its reason: workers, rendezvous, devices, "
             "threads, console, command, logs, and every setting that was given.",
     .yields_to = {{Id::kQuiet}},
     .take = to_log<read_verbosity, &LogConfig::verbosity>},
    {.id = Id::kLogLinePrefixTemplate,
     .name = "log-line-prefix-template",
     .variable = Variable::kPet,
     .metavar = "TEXT",
     .help = "Prefix of tee'd lines with ${role_name}, ${local_rank}, ${rank}, ${hostname}. "
             "Default: TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE, otherwise "
             "[${role_name}${local_rank}]:",
     .fallback = "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE",
     .unset = "[${role_name}${local_rank}]:",
     .take = to_log<read_prefix, &LogConfig::prefix_template>},
    {.id = Id::kDuplicateStdoutFilters,
     .name = "duplicate-stdout-filters",
     .variable = Variable::kPet,
     .metavar = "TEXTS",
     .help = "Copy tee'd stdout lines that contain one of these texts to filtered_stdout.log. "
             "Separated by commas; ,, is a comma.",
     .yields_to = {{Id::kLogDir, no_files}},
     .take = with_origin<read_filters, &LogConfig::stdout_filters, &LogRequest::stdout_filters>},
    {.id = Id::kDuplicateStderrFilters,
     .name = "duplicate-stderr-filters",
     .variable = Variable::kPet,
     .metavar = "TEXTS",
     .help = "The same for stderr and filtered_stderr.log.",
     .yields_to = {{Id::kLogDir, no_files}},
     .take = with_origin<read_filters, &LogConfig::stderr_filters, &LogRequest::stderr_filters>},
    {.id = Id::kConsole,
     .name = "console",
     .value = Value::kChoice,
     .metavar = "raw|quoted|prefix|rank0",
     .choices = "raw,quoted,prefix,rank0",
     .help = "How output of workers is shown. quoted: as they write it, and a failure report can "
             "quote stderr. raw: workers inherit the console, and stderr is not quoted. prefix: "
             "whole lines with host and rank. rank0: stdout of rank 0 as it is, that of other "
             "ranks in log files, stderr as with prefix. NO_COLOR turns colours off. Default: "
             "rank0 where several ranks share a terminal, unless --compat or an option above "
             "says where output goes; otherwise quoted.",
     .brief = "how output of workers is shown",
     .take = to_log<read_console, &LogConfig::console>},
};

}  // namespace

std::string_view name_of(Console console) {
  for (const auto& [name, known] : kConsoles) {
    if (known == console) return name;
  }
  return kConsoles.front().first;
}

std::span<const OptionSpec> output_options() {
  return kOutputRows;
}

}  // namespace ddprun
