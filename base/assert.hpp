// DDPRUN_ASSERT: checks an invariant that only a bug can violate. Enabled in release builds too:
// prints the condition and its location, then aborts.
#pragma once

namespace ddprun {
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);
}  // namespace ddprun

#define DDPRUN_ASSERT(condition) \
  ((condition) ? void(0) : ::ddprun::assertion_failed(#condition, __FILE__, __LINE__))
