// scan: parses the words of a command line like Python's argparse does for torchrun, because
// existing scripts rely on it (docs/TORCHRUN.md). CLI11 supports neither abbreviations nor
// ambiguous spellings. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "launcher/options/option_table.hpp"

namespace ddprun {

struct GivenOption {
  OptionId id;
  std::string value;  // "" for a flag
};

struct ScannedLine {
  std::vector<GivenOption> options;  // in order, including repeated options
  std::vector<std::string> program;  // from the first positional argument on, verbatim
  std::optional<OptionId> action;    // --help or the like: nothing after it was parsed
  std::string action_value;          // one of its choices; of a kAction its spelling: "-h"
};

/// `words` excludes the program name. A usage error names the word and, for an unknown option, the
/// most similar known one.
[[nodiscard]] Result<ScannedLine> scan(const std::vector<std::string>& words);

// The option that the user probably meant. Pure.

/// The optimal string alignment distance: insertions, deletions, substitutions and swaps of
/// adjacent letters between two words.
[[nodiscard]] std::size_t edit_distance(std::string_view left, std::string_view right);

/// Whether a word at this distance from a known one is that word with typing mistakes.
[[nodiscard]] bool is_typing_mistake(std::string_view word, std::size_t distance);

/// "did you mean --nproc-per-node?" for an unknown option with its dashes: the option of that
/// meaning in other launchers, else one with that beginning, else one spelled like it. Empty: none.
[[nodiscard]] std::string suggestion(const std::string& unknown);

}  // namespace ddprun
