// Environment: the variables of a process as a value, so that no code below main() calls getenv().
// Plain data, no thread rule.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace ddprun {

using Environment = std::map<std::string, std::string, std::less<>>;

/// From a null-terminated block of "NAME=value" such as `environ`; of a repeated name the first
/// counts, as with getenv(). An entry without '=' is left out.
[[nodiscard]] Environment read_environment(const char* const* block);

/// "NAME=value" of each, in the order of the names.
[[nodiscard]] std::vector<std::string> to_block(const Environment& environment);

/// The value, or `otherwise` when the name is not set.
[[nodiscard]] std::string value_or(const Environment& environment, const std::string& name,
                                   const std::string& otherwise);

}  // namespace ddprun
