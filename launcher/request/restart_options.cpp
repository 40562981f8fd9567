// The options below "Restarts and stopping" in --help.
#include <signal.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "agent/config/launch_config.hpp"
#include "base/exit_status.hpp"
#include "launcher/request/rows.hpp"

namespace ddprun {
namespace {

template <auto read, auto member>
constexpr auto to_stopping = put<read, &Request::stopping, &StopRequest::config, member>;

std::string must_be_up_to(std::int64_t most) {
  return " must be a whole number, 0 to " + std::to_string(most);
}

Result<void> check_interval(const Given& given, Request& /*request*/) {
  if (parse_number(given.text).value_or(0) > 0) return {};
  return usage(given.shown() + " must be above 0");
}

Result<void> take_restarts(const Given& given, Request& request) {
  const std::int64_t count = given.settings.integer(given.id);
  constexpr int kMost = std::numeric_limits<int>::max();
  if (count < 0 || count > kMost) return usage(given.shown() + must_be_up_to(kMost));
  request.stopping.max_restarts = given.origin();
  request.stopping.config.max_restarts = static_cast<int>(count);
  return {};
}

Result<Duration> parse_grace(const std::string& text, const std::string& shown) {
  if (const auto time = parse_time(text)) return *time;
  return usage(shown + " must be 0 or more seconds, or have a unit: 90s, 10m");
}

Result<Duration> read_grace(const Given& given) {
  return parse_grace(given.text, given.shown());
}

Result<Duration> read_shutdown_timeout(const Given& given) {
  if (given.given) return read_grace(given);
  const std::string variable(spec_of(given.id).fallback);
  const auto found = given.environment.find(variable);
  if (found == given.environment.end()) return kShutdownTimeoutDefault;
  return parse_grace(found->second, variable + "='" + found->second + "'");
}

/// Unset: off.
Result<std::optional<Duration>> read_limit(const Given& given) {
  std::optional<Duration> limit;
  if (!given.given) return limit;
  limit = parse_positive_time(given.text);
  if (limit) return limit;
  return usage(given.shown() + " is not a time such as 600, 90s, 10m or 2h");
}

/// Unset: --restart=all.
Result<std::optional<Duration>> read_rejoin_timeout(const Given& given) {
  auto limit = read_limit(given);
  if (!limit) return limit.error();
  if (given.settings.text(Id::kRestart) == "failed") {
    return std::optional(limit->value_or(kRejoinTimeoutDefault));
  }
  if (given.source == Source::kCommandLine) {
    return usage(given.name + " is a limit of --restart=failed: add it");
  }
  return std::optional<Duration>();
}

Result<void> take_spares(const Given& given, Request& request) {
  StopConfig& config = request.stopping.config;
  const std::int64_t count = given.settings.integer(given.id);
  if (count < 0 || count > kSparesMax) return usage(given.shown() + must_be_up_to(kSparesMax));
  if (count == 0 || config.rejoin_timeout) {
    config.spares = static_cast<int>(count);
  } else if (given.source == Source::kCommandLine) {  // elsewhere it is for other runs than this
    return usage(given.name +
                 ": a spare takes the place of a lost rank with --restart=failed: add it");
  }
  return {};
}

Result<void> add_signal(StopRequest& request, const std::string& name, const std::string& option) {
  if (name.empty()) return {};
  const int number = signal_number(name);
  if (number == SIGKILL || number == SIGSTOP) {
    return usage(option + ": " + name + " cannot be handled by any program; leave it out");
  }
  if (number == 0) {
    request.notes.push_back(option + ": unknown signal '" + name + "' ignored");
    return {};
  }
  std::vector<int>& signals = request.config.signals;
  const bool repeated = std::find(signals.begin(), signals.end(), number) != signals.end();
  if (!repeated) signals.push_back(number);
  return {};
}

Result<void> take_signals(const Given& given, Request& request) {
  request.stopping.config.signals_text = given.text;
  for (const std::string& name : split_list(given.text)) {
    auto added = add_signal(request.stopping, std::string(trimmed(name)), given.name);
    if (!added) return added;
  }
  return {};
}

/// A name that Python can import: no empty part, and nothing that would end the list.
bool is_module(std::string_view name) {
  const auto wrong = [](char c) {
    const bool word = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    return !word && c != '_' && c != '.' && (static_cast<unsigned char>(c) < 128);
  };
  return !name.empty() && name.front() != '.' && name.back() != '.' &&
         name.find("..") == std::string_view::npos && std::none_of(name.begin(), name.end(), wrong);
}

Result<void> parse_modules(const Settings& settings, WarmConfig& config) {
  const Origin origin = settings.origin(Id::kPreload);
  for (const std::string& part : split_list(origin.text)) {
    const std::string name(trimmed(part));
    if (name.empty()) continue;
    if (!is_module(name)) return usage(origin.quoted() + ": '" + name + "' is no module's name");
    config.preload.push_back(name);
  }
  return {};
}

Result<void> parse_word(const std::string& word, const Origin& origin, WarmRequest& request) {
  // A variable is switched on by 1; elsewhere that is a time.
  const bool is_on = word == "1" && origin.source == Source::kVariable;
  if (word.empty() || word == "on" || is_on) return {};
  if (word == "first") {
    request.config.first = true;
    return {};
  }
  if (word == "demand") {
    request.config.ahead = false;
    return {};
  }
  if (word == "force") {
    request.force = true;
    return {};
  }
  const auto time = parse_positive_time(word);
  if (!time) {
    return usage(origin.shown() + " is not first, force, demand or a time such as 90s or 10m");
  }
  request.config.after = *time;
  return {};
}

Result<std::optional<WarmRequest>> read_warm(const Given& given) {
  WarmRequest request;
  auto modules = parse_modules(given.settings, request.config);
  if (!modules) return modules.error();
  const bool off = !given.given || given.text.empty() || given.text == "0";
  if (off && given.settings.on_command_line(Id::kPreload)) {
    return usage(given.settings.origin(Id::kPreload).name + " is what --warm imports: add --warm");
  }
  if (off) return std::optional<WarmRequest>();
  for (const std::string& part : split_list(given.text)) {
    auto parsed = parse_word(std::string(trimmed(part)), given, request);
    if (!parsed) return parsed.error();
  }
  if (request.config.first && request.config.preload.empty()) {
    return usage(given.name + "=first imports modules before any worker has shown which: add " +
                 "--preload torch,torch._dynamo");
  }
  return std::optional(std::move(request));
}

constexpr OptionSpec kRestartRows[]{
    {.id = Id::kMonitorInterval,
     .name = "monitor-interval",
     .value = Value::kNumber,
     .variable = Variable::kPet,
     .metavar = "SECONDS",
     .preset = "0.1",
     .help = "Accepted for torchrun compatibility and ignored: the kernel tells ddprun of exits, "
             "it does not poll for them.",
     .for_torchrun = true,
     .take = check_interval},
    {.id = Id::kMaxRestarts,
     .name = "max-restarts",
     .value = Value::kInteger,
     .variable = Variable::kPet,
     .metavar = "N",
     .preset = "0",
     .help = "Maximum number of times the worker group is restarted after a failure.",
     .brief = "restarts after failures; default 0",
     .take = take_restarts},
    {.id = Id::kShutdownTimeout,
     .name = "shutdown-timeout",
     .variable = Variable::kPet,
     .metavar = "TIME",
     .help = "From the stop signal to SIGKILL, at every stop: 90, 90s or 10m. Unset: "
             "TORCH_ELASTIC_SHUTDOWN_TIMEOUT, else 30.",
     .fallback = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT",
     .unset = "30",
     .take = to_stopping<read_shutdown_timeout, &StopConfig::shutdown_timeout>},
    {.id = Id::kStragglerTimeout,
     .name = "straggler-timeout",
     .variable = Variable::kPet,
     .metavar = "TIME",
     .preset = "10",
     .help = "After a success: how long processes that workers left may continue without progress, "
             "then SIGTERM, and 2 s later SIGKILL. 0: they are stopped at once.",
     .take = to_stopping<read_grace, &StopConfig::straggler_timeout>},
    {.id = Id::kFailureGrace,
     .name = "failure-grace",
     .metavar = "TIME",
     .preset = "1",
     .help = "After a failure that ends the run: how long the other ranks, on every node, may "
             "continue, to end by themselves, before the stop signal. 0: they are stopped at once.",
     .take = to_stopping<read_grace, &StopConfig::failure_grace>},
    {.id = Id::kFinishTimeout,
     .name = "finish-timeout",
     .metavar = "TIME",
     .help = "How long ranks may continue after the first one on their node exited with code 0, "
             "in seconds or with a unit (30m): then stacks are saved and the round fails. Off by "
             "default.",
     .unset = "off",
     .take = to_stopping<read_limit, &StopConfig::finish_timeout>},
    {.id = Id::kHangTimeout,
     .name = "hang-timeout",
     .metavar = "TIME",
     .help = "If no rank uses CPU time, reads, writes or asks the user for this long, in "
             "seconds or with a unit (10m), stacks are saved and the round fails. Off by default.",
     .brief = "fail a round without progress",
     .unset = "off",
     .take = to_stopping<read_limit, &StopConfig::hang_timeout>},
    {.id = Id::kMinUptime,
     .name = "min-uptime",
     .variable = Variable::kPet,
     .metavar = "TIME",
     .help = "Ends the run, whatever restarts are left, when two rounds in a row fail in the "
             "same way within this time of their start, for example 60s. Off by default.",
     .unset = "off",
     .take = to_stopping<read_limit, &StopConfig::min_uptime>},
    {.id = Id::kRestart,
     .name = "restart",
     .value = Value::kChoice,
     .metavar = "all|failed",
     .preset = "all",
     .choices = "all,failed",
     .help = "Which ranks a restart starts again. failed: ranks that can take a new round "
             "(docs/RECOVERY.md) keep their process."},
    {.id = Id::kRejoinTimeout,
     .name = "rejoin-timeout",
     .metavar = "TIME",
     .help = "How long a rank that --restart=failed keeps has to take the new round, in seconds "
             "or with a unit (2m): then it is killed and started again. Default 60 s.",
     .unset = "60",
     .take = to_stopping<read_rejoin_timeout, &StopConfig::rejoin_timeout>},
    {.id = Id::kSpares,
     .name = "spares",
     .value = Value::kInteger,
     .metavar = "N",
     .preset = "0",
     .help = "Processes on each node that wait with everything loaded, and take the place of a "
             "rank that is lost, with --restart=failed (docs/RECOVERY.md).",
     .yields_to = {{Id::kVirtualLocalRank}, {Id::kNumaBinding}, {Id::kShareGpus}},
     .take = take_spares},
    {.id = Id::kSignalsToHandle,
     .name = "signals-to-handle",
     .variable = Variable::kPet,
     .metavar = "NAMES",
     .preset = "SIGTERM,SIGINT,SIGHUP,SIGQUIT",
     .help = "Signals that stop the run; they are forwarded to the workers first.",
     .take = take_signals},
    {.id = Id::kWarm,
     .name = "warm",
     .value = Value::kOptional,
     .metavar = "[=first|demand|force|TIME]",
     .help =
         "Restarted Python workers skip their imports (docs/RECOVERY.md). A process that imports "
         "what they did is made 30 s, or this time, after the first start; first: before it; "
         "demand: forked only when needed; force: although a GPU is visible. Off by default.",
     .unset = "off",
     .take = put<read_warm, &Request::warm>},
    {.id = Id::kPreload,
     .name = "preload",
     .metavar = "MODULES",
     .help = "What --warm imports, for example torch,torch._dynamo,transformers. By default what "
             "the workers have imported."},
};

}  // namespace

std::span<const OptionSpec> restart_options() {
  return kRestartRows;
}

}  // namespace ddprun
