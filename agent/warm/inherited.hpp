// What a process inherits besides its environment, as far as programs and libraries act on it when
// they start. Thread rule: none.
#pragma once

#include <map>
#include <string>

#include "base/result.hpp"

namespace ddprun::warm {

inline constexpr const char* kStandardOutput = "standard output";
inline constexpr const char* kStandardError = "standard error";
inline constexpr const char* kSeekable = "seekable";

/// For Start::inherited: of this process, of the interpreter's file, and of the worker's streams.
[[nodiscard]] std::map<std::string, std::string> read_inherited(const std::string& program,
                                                                int stdout_fd, int stderr_fd);

/// Refuses what is no executable but, for example, a script that runs one, and what it cannot read.
[[nodiscard]] Result<void> check_binary(const std::string& program);

}  // namespace ddprun::warm
