// scan: the words of a command line, taken apart the way Python's argparse does it for torchrun,
// because that is what people's scripts were written against (docs/TORCHRUN.md). CLI11 cannot: it
// knows neither abbreviations nor "ambiguous spelling". Pure, no thread rule.
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
  std::vector<GivenOption> options;  // in their order; a repeated one stays repeated
  std::vector<std::string> program;  // from the first positional on, verbatim
  std::optional<OptionId> action;    // --help or --version was met: nothing after it was read
};

/// `words` without the name of ddprun itself. A usage error names the word and, for an unknown
/// option, the nearest known one.
[[nodiscard]] Result<ScannedLine> scan(const std::vector<std::string>& words);

}  // namespace ddprun
