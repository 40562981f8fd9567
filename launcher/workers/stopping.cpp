#include "launcher/workers/stopping.hpp"

#include <signal.h>

#include <algorithm>
#include <limits>

#include "base/exit_status.hpp"
#include "launcher/options/numbers.hpp"
#include "launcher/usage.hpp"
#include "launcher/workers/lists.hpp"

namespace ddprun {
namespace {

using Id = OptionId;

constexpr const char* kTimeoutVariable = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT";
constexpr std::int64_t kDefaultTimeoutSeconds = 30;
// A number of seconds that no run outlives and no Duration overflows at.
constexpr std::int64_t kTimeoutSecondsMax = 10LL * 365 * 24 * 3600;

std::string must_be_up_to(const std::string& of_what, std::int64_t most) {
  return " must be a whole number" + of_what + ", 0 to " + std::to_string(most);
}

Result<int> choose_restarts(const Settings& settings) {
  const std::int64_t count = settings.integer(Id::kMaxRestarts);
  constexpr int kMost = std::numeric_limits<int>::max();
  if (count < 0 || count > kMost) {
    return usage(settings.shown(Id::kMaxRestarts) + must_be_up_to("", kMost));
  }
  return static_cast<int>(count);
}

Result<Duration> checked(std::int64_t seconds, const std::string& shown) {
  if (seconds >= 0 && seconds <= kTimeoutSecondsMax) return Duration(std::chrono::seconds(seconds));
  return usage(shown + must_be_up_to(" of seconds", kTimeoutSecondsMax));
}

Result<Duration> checked(const Settings& settings, OptionId timeout) {
  return checked(settings.integer(timeout), settings.shown(timeout));
}

Result<Duration> choose_timeout(const Settings& settings, const Environment& environment) {
  if (settings.given(Id::kShutdownTimeout)) return checked(settings, Id::kShutdownTimeout);
  const auto found = environment.find(kTimeoutVariable);
  if (found == environment.end()) return checked(kDefaultTimeoutSeconds, "");
  return checked(parse_integer(found->second).value_or(-1),
                 std::string(kTimeoutVariable) + "='" + found->second + "'");
}

Result<void> take_signal(Stopping& stopping, const std::string& name, const std::string& option) {
  if (name.empty()) return {};
  const int number = signal_number(name);
  if (number == SIGKILL || number == SIGSTOP) {
    return usage(option + ": " + name + " cannot be handled by any program; leave it out");
  }
  if (number == 0) {
    stopping.notes.push_back(option + ": unknown signal '" + name + "' left out");
    return {};
  }
  std::vector<int>& signals = stopping.config.signals;
  const bool repeated = std::find(signals.begin(), signals.end(), number) != signals.end();
  if (!repeated) signals.push_back(number);
  return {};
}

Result<void> check_interval(const Settings& settings) {
  if (settings.number(Id::kMonitorInterval) > 0) return {};
  return usage(settings.shown(Id::kMonitorInterval) + " must be above 0");
}

}  // namespace

Result<Stopping> choose_stopping(const Settings& settings, const Environment& environment) {
  auto interval = check_interval(settings);
  if (!interval) return interval.error();
  Stopping stopping;
  auto restarts = choose_restarts(settings);
  if (!restarts) return restarts.error();
  stopping.config.max_restarts = *restarts;
  auto timeout = choose_timeout(settings, environment);
  if (!timeout) return timeout.error();
  stopping.config.shutdown_timeout = *timeout;
  timeout = checked(settings, Id::kStragglerTimeout);
  if (!timeout) return timeout.error();
  stopping.config.straggler_timeout = *timeout;
  stopping.config.signals_text = settings.text(Id::kSignalsToHandle);
  for (const std::string& name : split_list(stopping.config.signals_text)) {
    auto taken =
        take_signal(stopping, std::string(trimmed(name)), settings.named(Id::kSignalsToHandle));
    if (!taken) return taken.error();
  }
  return stopping;
}

}  // namespace ddprun
