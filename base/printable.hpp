// Text from outside, of workers, peers and command lines: valid UTF-8, without escape sequences of
// terminals (ECMA-48, 5.4 and 5.6), and in a line of ddprun's own such that it does not end that
// line, move the cursor or reverse the reading direction. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ddprun {

/// Length of the valid character at the front of `text`, 0 if there is none.
[[nodiscard]] std::size_t character_bytes(std::string_view text);

/// Replaces each byte that is not part of a character.
inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// `text` with every byte that is not part of valid UTF-8 replaced by U+FFFD, cut to at most
/// `bytes_max` bytes on a character boundary (a cut one ends in "…").
[[nodiscard]] std::string clean_utf8(std::string_view text, std::size_t bytes_max);

/// How many bytes the sequence takes that begins `text` with ESC: control sequences (ESC [),
/// strings (ESC ], P, X, ^ and _, until BEL or ESC \), and those with intermediate bytes (ESC ( B).
/// Of one that is cut off, all that is there.
[[nodiscard]] std::size_t escape_size(std::string_view text);

/// Whether `sequence` sets colours and the like: ESC [ ... m.
[[nodiscard]] bool is_colour(std::string_view sequence);

/// Text without colours. Other sequences stay: what they do to a terminal is not to be hidden.
[[nodiscard]] std::string without_colours(std::string_view text);

/// `text` on one line with every character visible: control characters, line and paragraph
/// separators and direction marks are written as "\n", "\x1b" or "\u202e", bytes that are not UTF-8
/// as U+FFFD. Tabs and all other characters are kept. Idempotent.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace ddprun
