#include <signal.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "agent/config/option_defaults.hpp"
#include "base/exit_status.hpp"
#include "launcher/options/values.hpp"
#include "launcher/request_parts.hpp"
#include "launcher/usage.hpp"

namespace ddprun {
namespace {

constexpr const char* kSleepVariable = "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT";
// A number of seconds that no run outlives and no Duration overflows at.
constexpr std::int64_t kTimeoutSecondsMax = 10LL * 365 * 24 * 3600;

std::string must_be_up_to(std::int64_t most) {
  return " must be a whole number, 0 to " + std::to_string(most);
}

Result<int> parse_restarts(const Settings& settings) {
  const std::int64_t count = settings.integer(OptionId::kMaxRestarts);
  constexpr int kMost = std::numeric_limits<int>::max();
  if (count >= 0 && count <= kMost) return static_cast<int>(count);
  return usage(settings.origin(OptionId::kMaxRestarts).shown() + must_be_up_to(kMost));
}

Result<Duration> parse_grace(const std::string& text, const std::string& shown) {
  if (const auto time = parse_time(text)) return *time;
  return usage(shown + " must be 0 or more seconds, or have a unit: 90s, 10m");
}

Result<Duration> parse_grace(const Settings& settings, OptionId timeout) {
  const Origin origin = settings.origin(timeout);
  return parse_grace(origin.text, origin.shown());
}

Result<Duration> parse_shutdown_timeout(const Settings& settings, const Environment& environment) {
  if (settings.given(OptionId::kShutdownTimeout)) {
    return parse_grace(settings, OptionId::kShutdownTimeout);
  }
  const std::string variable(spec_of(OptionId::kShutdownTimeout).fallback);
  const auto found = environment.find(variable);
  if (found == environment.end()) return kShutdownTimeoutDefault;
  return parse_grace(found->second, variable + "='" + found->second + "'");
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

Result<void> parse_signals(const Settings& settings, StopRequest& request) {
  const Origin origin = settings.origin(OptionId::kSignalsToHandle);
  request.config.signals_text = origin.text;
  for (const std::string& name : split_list(origin.text)) {
    auto added = add_signal(request, std::string(trimmed(name)), origin.name);
    if (!added) return added;
  }
  return {};
}

Result<void> check_monitor_interval(const Settings& settings) {
  if (settings.number(OptionId::kMonitorInterval) > 0) return {};
  return usage(settings.origin(OptionId::kMonitorInterval).shown() + " must be above 0");
}

/// Unset: off.
Result<std::optional<Duration>> parse_limit(const Settings& settings, OptionId option) {
  std::optional<Duration> limit;
  if (!settings.given(option)) return limit;
  const Origin origin = settings.origin(option);
  limit = parse_positive_time(origin.text);
  if (limit) return limit;
  return usage(origin.shown() + " is not a time such as 600, 90s, 10m or 2h");
}

/// Unset: --restart=all.
Result<std::optional<Duration>> parse_restart(const Settings& settings) {
  auto limit = parse_limit(settings, OptionId::kRejoinTimeout);
  if (!limit) return limit.error();
  if (settings.origin(OptionId::kRestart).text == "failed") {
    return std::optional(limit->value_or(kRejoinTimeoutDefault));
  }
  if (settings.on_command_line(OptionId::kRejoinTimeout)) {
    return usage(settings.origin(OptionId::kRejoinTimeout).name +
                 " is a limit of --restart=failed: add it");
  }
  return std::optional<Duration>();
}

Result<int> parse_spares(const Settings& settings, bool keeps_ranks) {
  const Origin origin = settings.origin(OptionId::kSpares);
  const std::int64_t count = settings.integer(OptionId::kSpares);
  if (count < 0 || count > kSparesMax) return usage(origin.shown() + must_be_up_to(kSparesMax));
  if (count == 0 || keeps_ranks) return static_cast<int>(count);
  if (!settings.on_command_line(OptionId::kSpares)) return 0;  // for other runs than this
  return usage(origin.name +
               ": a spare takes the place of a lost rank with --restart=failed: add it");
}

/// As in torchrun a value that is no number above 0 is off.
std::optional<Duration> parse_sleep_timeout(const Environment& environment) {
  const double seconds = parse_number(value_or(environment, kSleepVariable, "")).value_or(0);
  if (seconds <= 0) return std::nullopt;
  const std::chrono::duration<double> limit(
      std::min(seconds, static_cast<double>(kTimeoutSecondsMax)));
  return std::max(Duration(1), std::chrono::duration_cast<Duration>(limit));
}

}  // namespace

Result<StopRequest> parse_stopping(const Settings& settings, const Environment& environment) {
  auto interval = check_monitor_interval(settings);
  if (!interval) return interval.error();
  auto restarts = parse_restarts(settings);
  if (!restarts) return restarts.error();
  auto shutdown = parse_shutdown_timeout(settings, environment);
  if (!shutdown) return shutdown.error();
  auto straggler = parse_grace(settings, OptionId::kStragglerTimeout);
  if (!straggler) return straggler.error();
  auto failure_grace = parse_grace(settings, OptionId::kFailureGrace);
  if (!failure_grace) return failure_grace.error();
  auto finish = parse_limit(settings, OptionId::kFinishTimeout);
  if (!finish) return finish.error();
  auto hang = parse_limit(settings, OptionId::kHangTimeout);
  if (!hang) return hang.error();
  auto min_uptime = parse_limit(settings, OptionId::kMinUptime);
  if (!min_uptime) return min_uptime.error();
  auto rejoin = parse_restart(settings);
  if (!rejoin) return rejoin.error();
  auto spares = parse_spares(settings, rejoin->has_value());
  if (!spares) return spares.error();
  StopRequest request{{*restarts,
                       *shutdown,
                       *straggler,
                       {},
                       {},
                       *finish,
                       *hang,
                       *min_uptime,
                       parse_sleep_timeout(environment),
                       *rejoin,
                       *spares,
                       *failure_grace},
                      settings.origin(OptionId::kMaxRestarts),
                      {}};
  auto signals = parse_signals(settings, request);
  if (!signals) return signals.error();
  return request;
}

}  // namespace ddprun
