// What a coroutine that was spawned on its own does with an exception: it is a defect of the
// program, and ends the event loop.
#pragma once

#include <exception>

namespace ddprun::net {

/// The completion handler of such a co_spawn.
inline void rethrow_bug(const std::exception_ptr& bug) {
  if (bug) std::rethrow_exception(bug);
}

}  // namespace ddprun::net
