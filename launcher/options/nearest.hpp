// The option that the user probably meant. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ddprun {

/// The optimal string alignment distance: insertions, deletions, substitutions and swaps of
/// adjacent letters between two words.
[[nodiscard]] std::size_t edit_distance(std::string_view left, std::string_view right);

/// Whether a word at this distance from a known one is that word with typing mistakes.
[[nodiscard]] bool is_typing_mistake(std::string_view word, std::size_t distance);

/// "did you mean --nproc-per-node?" for an unknown option with its dashes: the option of that
/// meaning in other launchers, else one with that beginning, else one spelled like it. Empty: none.
[[nodiscard]] std::string suggestion(const std::string& unknown);

}  // namespace ddprun
