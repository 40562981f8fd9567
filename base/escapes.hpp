// Escape sequences of terminals in the output of programs (ECMA-48, 5.4 and 5.6). Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ddprun {

/// How many bytes the sequence takes that begins `text` with ESC: control sequences (ESC [),
/// strings (ESC ], P, X, ^ and _, until BEL or ESC \), and those with intermediate bytes (ESC ( B).
/// Of one that is cut off, all that is there.
[[nodiscard]] std::size_t escape_size(std::string_view text);

/// Whether `sequence` sets colours and the like: ESC [ ... m.
[[nodiscard]] bool is_colour(std::string_view sequence);

/// Text without colours. Other sequences stay: what they do to a terminal is not to be hidden.
[[nodiscard]] std::string without_colours(std::string_view text);

}  // namespace ddprun
