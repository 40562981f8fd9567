// Environment: the variables of a process as a value, so that no code below main() calls getenv().
#pragma once

#include <map>
#include <string>
#include <vector>

namespace ddprun {

using Environment = std::map<std::string, std::string, std::less<>>;

/// Parses a null-terminated block of "NAME=value" entries such as `environ`. The first entry of a
/// repeated name wins, as with getenv(); an entry without '=' is skipped.
[[nodiscard]] Environment read_environment(const char* const* block);

/// "NAME=value" entries, sorted by name.
[[nodiscard]] std::vector<std::string> to_block(const Environment& environment);

/// The value, or `otherwise` when the name is not set.
[[nodiscard]] std::string value_or(const Environment& environment, const std::string& name,
                                   const std::string& otherwise);

}  // namespace ddprun
