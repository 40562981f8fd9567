// Supervisor: the loop of the front and of the guard, from the fork of the process below to the
// exit code. Thread rule: the only thread of its process, with the signals of supervised_signals()
// blocked.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include "launcher/front/sweep.hpp"

namespace ddprun::front {

enum class Role { kFront, kGuard };

/// What the front takes and forwards: all that can be blocked, but for SIGTTIN and SIGTTOU
/// (they stop the front), for those that a fault raises, and for those that were ignored at the
/// start (nohup).
[[nodiscard]] sigset_t supervised_signals();

struct Supervised {
  Role role = Role::kFront;
  pid_t child = 0;   // the guard, or the agent
  pid_t parent = 0;  // of the guard: the front
  sigset_t signals = {};
  Spared spared;
};

/// Forwards signals until the child has ended, ends everything below, says what it had to end, and
/// returns the exit code: the child's, or 128 + the signal that killed it. The guard also ends
/// everything when its parent has ended.
[[nodiscard]] int supervise(const Supervised& supervised);

}  // namespace ddprun::front
