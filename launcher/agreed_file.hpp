// A file in which the nodes of a run agree on a line: that of the first one to write. It may be on
// a file system that they share, and serve several runs, one after another or together. Thread
// rule: any; other processes write it at the same time.
#pragma once

#include <chrono>
#include <string>

#include "base/result.hpp"

namespace ddprun {

inline constexpr std::chrono::milliseconds kLockMax = std::chrono::seconds(10);

enum class Agree {
  kWrite,
  kLook,  // leaves the file as it is: empty where no line stands there
};

/// The line of `key` in the file: `line`, unless there is another one already. The file is created
/// where it is missing. kLook has the same errors. Neither has a line end, and `key` no blank.
/// Errors: kUsage with a sentence that names the path, for what cannot be opened, written or locked
/// in time, and for the file of another program, or of another user where all may write.
[[nodiscard]] Result<std::string> agree_on_line(const std::string& path, const std::string& key,
                                                const std::string& line,
                                                Agree agree = Agree::kWrite,
                                                std::chrono::milliseconds lock_max = kLockMax);

}  // namespace ddprun
