// Expands macros in worker arguments and line prefixes with the rules of Python's
// string.Template.safe_substitute, which torchrun uses for both. Pure.
#pragma once

#include <map>
#include <string>

namespace ddprun {

/// Replaces `$name` and `${name}` with the value of `name`, and `$$` with `$`. Unknown names and a
/// lone `$` are left unchanged. A name matches [A-Za-z_][A-Za-z0-9_]*, greedily.
[[nodiscard]] std::string substitute(const std::string& text,
                                     const std::map<std::string, std::string>& values);

}  // namespace ddprun
