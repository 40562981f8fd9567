// sweep: SIGKILL to everything below this process, and what remains of it collected. Allocates
// nothing, so that it may run in a signal handler. Thread rule: any one thread, with SIGCHLD
// blocked; nothing else of the process may wait for children meanwhile.
#pragma once

#include <time.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <span>

#include "agent/proc/cgroup.hpp"
#include "launcher/front/process_tree.hpp"

namespace ddprun::front {

// How long what is left is killed and waited for, where nothing was said about it before.
inline constexpr std::chrono::seconds kSweepMax{5};

struct Swept {
  int ended = 0;   // children collected: everything below comes here when its parent is gone
  int killed = 0;  // of these, by this sweep
  int left = 0;    // still alive
  std::array<ProcessSeen, 4> named = {};  // the first of those that were alive last
};

/// Kills and reaps until nothing is left but what is spared, `limit` at most. For kPipeEndWait it
/// leaves out processes that end with their pipe; then `cgroups` are killed, too, in which no fork
/// escapes. Processes that fork
/// meanwhile are killed in the next pass; process groups are killed as a whole, which no fork
/// escapes. Only a process whose parent is a child subreaper is found for certain.
[[nodiscard]] Swept sweep(const Spared& spared, std::chrono::milliseconds limit,
                          std::span<const Cgroup> cgroups = {});

}  // namespace ddprun::front
