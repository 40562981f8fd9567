// The text of --help, generated from the option table. Pure.
#pragma once

#include <cstddef>
#include <string>

namespace ddprun {

/// "ddprun [options] training_script ...", under the name that it was called by.
[[nodiscard]] std::string usage_line();

/// No line is longer than `columns` (at least 40). Ends with a newline.
[[nodiscard]] std::string help_text(std::size_t columns);

/// `text`, wrapped at blanks to lines of at most `columns`, each indented by `indent`; a word that
/// is too long gets its own line and is broken if necessary.
[[nodiscard]] std::string wrapped(const std::string& text, std::size_t indent, std::size_t columns);

}  // namespace ddprun
