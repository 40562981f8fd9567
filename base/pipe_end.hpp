// Processes that end by themselves when those that hold the other end of their pipe have ended, and
// tidy up then: Python's resource tracker, which removes POSIX shared memory and semaphores, its
// fork server, and torch_shm_manager. Allocates nothing. Thread rule: none.
#pragma once

#include <sys/types.h>

#include <chrono>

#include "base/clock.hpp"

namespace ddprun {

/// When workers have got SIGKILL, these have this long before they get it, too.
inline constexpr Duration kPipeEndWait = std::chrono::milliseconds(200);

/// Whether this is one, by its command line. What a fork server has forked shows the command line
/// of the server, and is none: `parent` tells them apart.
[[nodiscard]] bool ends_with_its_pipe(pid_t process, pid_t parent);

}  // namespace ddprun
