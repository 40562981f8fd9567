#include "launcher/request/request.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "launcher/request/rows.hpp"

namespace ddprun {
namespace {

constexpr const char* kSleepVariable = "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT";
// A number of seconds that no run outlives and no Duration overflows at.
constexpr std::int64_t kTimeoutSecondsMax = 10LL * 365 * 24 * 3600;

struct Rows {
  OptionGroup group;
  std::span<const OptionSpec> options;
};

/// In the order in which a user would want to read about mistakes.
std::array<Rows, 5> rows_by_group() {
  return {{{OptionGroup::kRendezvous, rendezvous_options()},
           {OptionGroup::kProgram, program_options()},
           {OptionGroup::kRestarts, restart_options()},
           {OptionGroup::kOutput, output_options()},
           {OptionGroup::kOther, other_options()}}};
}

std::array<OptionSpec, kOptionCount> collected() {
  std::array<OptionSpec, kOptionCount> table;
  for (const auto& [group, options] : rows_by_group()) {
    for (const OptionSpec& option : options) {
      OptionSpec& place = table.at(static_cast<std::size_t>(option.id));
      place = option;
      place.group = option.for_torchrun ? OptionGroup::kCompatibility : group;
    }
  }
  return table;
}

/// As in torchrun a value that is no number above 0 is off.
std::optional<Duration> parse_sleep_timeout(const Environment& environment) {
  const double seconds = parse_number(value_or(environment, kSleepVariable, "")).value_or(0);
  if (seconds <= 0) return std::nullopt;
  const std::chrono::duration<double> limit(
      std::min(seconds, static_cast<double>(kTimeoutSecondsMax)));
  return std::max(Duration(1), std::chrono::duration_cast<Duration>(limit));
}

/// As in torchrun every value but "1" is off.
std::optional<std::string> parse_timer_pipe(const Environment& environment) {
  if (value_or(environment, "TORCHELASTIC_ENABLE_FILE_TIMER", "") != "1") return std::nullopt;
  return value_or(environment, "TORCHELASTIC_TIMER_FILE", "");
}

StoreHost shared_store(const Environment& environment) {
  const bool off = value_or(environment, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "0") == "1";
  return off ? StoreHost::kWorkerZero : StoreHost::kAgent;
}

}  // namespace

std::span<const OptionSpec> all_options() {
  static const std::array<OptionSpec, kOptionCount> kTable = collected();
  return kTable;
}

std::string given_names(std::initializer_list<const Origin*> candidates) {
  std::vector<std::string> names;
  for (const Origin* candidate : candidates) {
    if (candidate->given) names.push_back(candidate->name);
  }
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  }
  return text;
}

Result<Request> parse_request(const Settings& settings, const std::vector<std::string>& program,
                              const Environment& environment) {
  Request request;
  for (const auto& [group, options] : rows_by_group()) {
    for (const OptionSpec& option : options) {
      if (option.take == nullptr) continue;
      auto taken = option.take({settings.origin(option.id), settings, environment}, request);
      if (!taken) return taken.error();
    }
  }
  request.workers.program = program;
  request.rendezvous.store_host = shared_store(environment);
  request.stopping.config.sleep_timeout = parse_sleep_timeout(environment);
  request.timer_pipe = parse_timer_pipe(environment);
  return request;
}

}  // namespace ddprun
