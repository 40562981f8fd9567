// A signal that a supervisor passes on below itself (launcher/front): its siginfo names the process
// that sent it, which kill() would lose. The kernel lets a process choose the sender for codes
// below zero. Pure, no thread rule.
#pragma once

#include <signal.h>

namespace ddprun {

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

}  // namespace ddprun
