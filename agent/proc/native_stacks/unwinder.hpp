// The native stacks of one process, by libdwfl of elfutils. Threads are stopped one after the
// other, with PTRACE_SEIZE: it sends no signal, so that a death of this process, at any moment,
// leaves the other one running. Thread rule: one thread, the same for every call.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <string>

namespace ddprun::native_stacks {

// Beyond these, threads and frames are left out.
inline constexpr std::size_t kThreadsMax = 64;
inline constexpr std::size_t kFramesMax = 48;

struct Frame {
  std::string function;  // demangled; "+0x1f0" in its module where no symbol is known
  std::string module;    // file name without its directory
};
using OnFrame = std::function<void(pid_t thread, const Frame& frame)>;

enum class Outcome {
  kDone,
  kGone,         // it ended meanwhile
  kDenied,       // ptrace is refused
  kUnsupported,  // not for this processor
};

/// Calls `on_frame` for each frame, the main thread's first, the innermost frame first. Blocks as
/// long as the kernel does not stop a thread (state D): the caller bounds it from outside.
[[nodiscard]] Outcome unwind(pid_t process, const OnFrame& on_frame);

}  // namespace ddprun::native_stacks
