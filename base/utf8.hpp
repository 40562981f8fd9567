// Validates UTF-8 in text from outside: worker output, host names. Pure.
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

}  // namespace ddprun
