// The macros in worker arguments and line prefixes: Python's string.Template.safe_substitute, which
// torchrun uses for both. Pure, no thread rule.
#pragma once

#include <map>
#include <string>

namespace ddprun {

/// `$name` and `${name}` become the value of `name`; `$$` becomes `$`; an unknown name and a lone
/// `$` stay as they are. A name is an ASCII letter or '_', then letters, digits and '_'; it is as
/// long as it can be.
[[nodiscard]] std::string substitute(const std::string& text,
                                     const std::map<std::string, std::string>& values);

}  // namespace ddprun
