// Foreign text in a line of ddprun's own: what workers, peers and command lines say must not end
// that line, move the cursor or turn the reading direction. Pure, no thread rule.
#pragma once

#include <string>
#include <string_view>

namespace ddprun {

/// `text` on one line as it can be seen: control characters, line and paragraph separators and
/// marks of writing direction become "\n", "\x1b" or "\u202e", bytes that are no UTF-8 U+FFFD. Tabs
/// and everything else stay. Twice the same as once.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace ddprun
