#include "agent/config/received_signal.hpp"

#include <signal.h>

#include "base/exit_status.hpp"
#include "base/printable.hpp"

namespace ddprun {

namespace {

constexpr std::chrono::seconds kPairWithin{1};

}  // namespace

std::string received_text(const ReceivedSignal& signal) {
  const std::string name = signal_name(signal.number);
  return signal.from.empty() ? name + " received" : name + " from " + printable(signal.from);
}

bool ends_by_default(int signal) {
  switch (signal) {
    case SIGCHLD:
    case SIGCONT:
    case SIGURG:
    case SIGWINCH:
    case SIGSTOP:
    case SIGTSTP:
    case SIGTTIN:
    case SIGTTOU:
      return false;
    default:
      return true;
  }
}

bool SignalPairs::completes_pair(int number, Way way, TimePoint now) {
  const auto index = static_cast<std::size_t>(number);
  if (index >= kNumbers) return false;
  const auto own = static_cast<std::size_t>(way);
  std::optional<TimePoint>& other = unpaired_[1 - own][index];
  if (other && now - *other <= kPairWithin) {
    other.reset();
    return true;
  }
  unpaired_[own][index] = now;
  return false;
}

}  // namespace ddprun
