// A file in which the nodes of a run agree on a line: that of the first one to write. It may be on
// a file system that they share, and serve several runs, one after another or together. Thread
// rule: any; other processes write it at the same time.
#pragma once

#include <string>

#include "base/result.hpp"

namespace ddprun {

enum class Agree {
  kWrite,
  kLook,  // leaves the file as it is: empty where no line stands there
};

/// The line of `key` in the file: `line`, unless there is another one already. The file is created
/// where it is missing. kLook has the same errors. Neither has a line end, and `key` no blank.
/// Errors: kUsage with a sentence that names the path, for what cannot be opened, locked or
/// written, and for another program's file.
[[nodiscard]] Result<std::string> agree_on_line(const std::string& path, const std::string& key,
                                                const std::string& line,
                                                Agree agree = Agree::kWrite);

}  // namespace ddprun
