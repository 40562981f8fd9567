// The option that somebody probably meant. Pure, no thread rule.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ddprun {

/// Insertions, deletions, substitutions and swaps of neighbours between two words (optimal string
/// alignment distance).
[[nodiscard]] std::size_t edit_distance(std::string_view left, std::string_view right);

/// "did you mean --nproc-per-node?" when an option is close to `name`, else which one is the
/// nearest.
[[nodiscard]] std::string suggestion(const std::string& name);

}  // namespace ddprun
