#include "launcher/workers/side_services.hpp"

#include <string>

#include "launcher/options/numbers.hpp"

namespace ddprun {
namespace {

constexpr const char* kFileTimer = "TORCHELASTIC_ENABLE_FILE_TIMER";
constexpr const char* kStuckTimeout = "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT";

Error unsupported(const std::string& variable, const std::string& value, const std::string& what) {
  return {ErrorKind::kUnsupported,
          variable + "=" + value + ": " + what + " is not supported yet; unset it to run without"};
}

}  // namespace

Result<void> check_side_services(const Environment& environment) {
  const std::string timer = value_or(environment, kFileTimer, "");
  if (timer == "1") return unsupported(kFileTimer, timer, "the watchdog for workers' timers");
  const std::string stuck = value_or(environment, kStuckTimeout, "");
  if (parse_number(stuck).value_or(0) > 0) {
    return unsupported(kStuckTimeout, stuck, "the watch for workers in uninterruptible sleep");
  }
  return {};
}

}  // namespace ddprun
