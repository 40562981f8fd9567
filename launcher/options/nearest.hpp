// The option that the user probably meant. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ddprun {

/// The optimal string alignment distance: insertions, deletions, substitutions and swaps of
/// adjacent letters between two words.
[[nodiscard]] std::size_t edit_distance(std::string_view left, std::string_view right);

/// "did you mean --nproc-per-node?" if an option is similar to `name`, otherwise the most similar
/// option.
[[nodiscard]] std::string suggestion(const std::string& name);

}  // namespace ddprun
