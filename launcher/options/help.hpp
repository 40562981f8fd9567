// The text of --help, generated from the option table. Pure, no thread rule.
#pragma once

#include <cstddef>
#include <string>

namespace ddprun {

/// No line is longer than `columns` (at least 40 are taken). Ends with a newline.
[[nodiscard]] std::string help_text(std::size_t columns);

/// `text` broken at blanks into lines of at most `columns`, each indented by `indent`; a word that
/// is too long stands on a line of its own, broken where it must be.
[[nodiscard]] std::string wrapped(const std::string& text, std::size_t indent, std::size_t columns);

}  // namespace ddprun
