// scan: parses the words of a command line like Python's argparse does for torchrun, because
// existing scripts rely on it (docs/TORCHRUN.md). CLI11 supports neither abbreviations nor
// ambiguous spellings. Pure.
#pragma once

#include <optional>
#include <string>
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
  std::string action_value;          // of a kChoiceAction, one of its choices
};

/// `words` excludes the program name. A usage error names the word and, for an unknown option, the
/// most similar known one.
[[nodiscard]] Result<ScannedLine> scan(const std::vector<std::string>& words);

}  // namespace ddprun
