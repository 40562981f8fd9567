// DDPRUN_ASSERT: a programmer's error. On in release too: prints the condition and place, then
// aborts.
#pragma once

namespace ddprun {
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);
}  // namespace ddprun

#define DDPRUN_ASSERT(condition) \
  ((condition) ? void(0) : ::ddprun::assertion_failed(#condition, __FILE__, __LINE__))
