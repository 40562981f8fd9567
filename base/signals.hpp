// Signals that pass through ddprun: from the front to the agent with their sender, and from one
// node to the workers of others. Pure, no thread rule.
#pragma once

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <deque>
#include <set>

#include "base/clock.hpp"

namespace ddprun {

// A signal that a supervisor passes on below itself (launcher/front): its siginfo names the process
// that sent it, which kill() would lose. The kernel lets a process choose the sender for codes
// below zero.

/// The name of the guard's process: `killall ddprun` spares it.
inline constexpr const char* kGuardName = "ddguard";

/// Carries a signal from the front to the guard, and tells the agent that its parent has ended. A
/// real-time signal, because of several that wait none is dropped.
[[nodiscard]] inline int relay_signal() {
  return SIGRTMAX - 1;
}

namespace detail {
inline constexpr int kForwardedMark = 0x0ddb << 16;
inline constexpr int kByKernel = 1 << 8;  // a key of the terminal, a timer: no process sent it
inline constexpr int kSignalBits = 0xff;
}  // namespace detail

/// The siginfo that delivers `original` as signal `carrier`: itself, or relay_signal().
[[nodiscard]] inline siginfo_t forwarded_info(const siginfo_t& original, int carrier) {
  siginfo_t info = {};
  info.si_signo = carrier;
  info.si_code = SI_QUEUE;
  info.si_pid = original.si_pid;
  info.si_uid = original.si_uid;
  const bool by_kernel = original.si_code > 0;
  info.si_value.sival_int =
      detail::kForwardedMark | (by_kernel ? detail::kByKernel : 0) | original.si_signo;
  return info;
}

/// The number of the signal that a siginfo with this code and value carries; 0: none, the signal
/// came from its sender directly.
[[nodiscard]] inline int forwarded_number(int code, int value) {
  constexpr int kBesidesTheMark = detail::kByKernel | detail::kSignalBits;
  if (code != SI_QUEUE || (value & ~kBesidesTheMark) != detail::kForwardedMark) return 0;
  return value & detail::kSignalBits;
}

[[nodiscard]] inline bool forwarded_by_kernel(int value) {
  return (value & detail::kByKernel) != 0;
}

// Which signals one node passes on to the workers of others: those by which users and schedulers
// tell a program something. What cannot be handled, or reports a fault, ends or freezes ranks: on
// other nodes no member may do that with a message.

[[nodiscard]] inline bool may_be_passed_on(int signal) {
  switch (signal) {
    case SIGHUP:
    case SIGINT:
    case SIGQUIT:
    case SIGUSR1:
    case SIGUSR2:
    case SIGALRM:
    case SIGTERM:
    case SIGURG:
    case SIGIO:
    case SIGPWR:
      return true;
    default:
      return signal >= SIGRTMIN && signal <= SIGRTMAX;
  }
}

// SignalMerge: which deliveries are one signal. A scheduler sends a signal to every node, and nodes
// pass theirs on to the others: within kSignalMergeWindow the same signal from another origin is
// the one that was taken already; from the same origin it is the next one.

inline constexpr Duration kSignalMergeWindow = std::chrono::seconds(2);
// Signals remembered at a time; a delivery of an older one counts as new.
inline constexpr std::size_t kSignalsRemembered = 32;

template <class Origin>
class SignalMerge {
 public:
  [[nodiscard]] bool is_new(int signal, const Origin& origin, TimePoint now) {
    while (!taken_.empty() && now - taken_.front().at >= kSignalMergeWindow) taken_.pop_front();
    const auto same = std::find_if(taken_.begin(), taken_.end(), [&](const Taken& one) {
      return one.signal == signal && one.origins.count(origin) == 0;
    });
    if (same != taken_.end()) {
      same->origins.insert(origin);
      return false;
    }
    if (taken_.size() >= kSignalsRemembered) taken_.pop_front();
    taken_.push_back({signal, now, {origin}});
    return true;
  }

 private:
  struct Taken {
    int signal = 0;
    TimePoint at{};
    std::set<Origin> origins;
  };
  std::deque<Taken> taken_;  // oldest first
};

}  // namespace ddprun
