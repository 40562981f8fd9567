// Writes what the launcher itself prints. Thread rule: none.
#pragma once

#include <string>

namespace ddprun {

/// Writes all of `text` to descriptor `file`. Returns 0 or errno.
[[nodiscard]] int write_text(int file, const std::string& text);

}  // namespace ddprun
