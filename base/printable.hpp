// Foreign text in a line of ddprun's own: text of workers, peers and command lines must not end
// that line, move the cursor or reverse the reading direction. Pure.
#pragma once

#include <string>
#include <string_view>

namespace ddprun {

/// `text` on one line with every character visible: control characters, line and paragraph
/// separators and direction marks are written as "\n", "\x1b" or "\u202e", bytes that are not UTF-8
/// as U+FFFD. Tabs and all other characters are kept. Idempotent.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace ddprun
