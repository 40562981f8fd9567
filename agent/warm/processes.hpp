// What /proc tells of processes: how much of the processors one has had, and what this one passes
// on to those that it starts.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace ddprun::warm {

/// Zero where the kernel does not count it.
struct Processor {
  Duration ran{};
  Duration waited{};   // ready to run, as far as that is over
  bool ready = false;  // it runs, or waits for a processor

  /// How long it has been ready without one, in the time `since` it was asked; as `before` it was
  /// before that.
  [[nodiscard]] Duration starved(const Processor& before, Duration since) const;
};

[[nodiscard]] Processor processor_of(pid_t process);

/// Whether a process of this session, other than its leader, is ready to run.
[[nodiscard]] bool has_ready_member(pid_t session);

inline constexpr const char* kStandardOutput = "standard output";
inline constexpr const char* kStandardError = "standard error";
inline constexpr const char* kSeekable = "seekable";

/// For Start::inherited, what a process inherits besides its environment, as far as programs and
/// libraries act on it when they start: of this process, of the interpreter's file, and of the
/// worker's streams.
[[nodiscard]] std::map<std::string, std::string> read_inherited(const std::string& program,
                                                                int stdout_fd, int stderr_fd);

/// Refuses what is no executable but, for example, a script that runs one, and what it cannot read.
[[nodiscard]] Result<void> check_binary(const std::string& program);

}  // namespace ddprun::warm
