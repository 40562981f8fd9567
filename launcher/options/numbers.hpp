// Numbers and words as the command line spells them. Pure, no thread rule.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"

namespace ddprun {

/// As Python's int(): blanks around it, a sign, digits with single underscores between them.
/// Nothing for any other text and beyond 64 bits.
[[nodiscard]] std::optional<std::int64_t> parse_integer(std::string_view text);

/// As Python's float(), without its names for infinity and "not a number".
[[nodiscard]] std::optional<double> parse_number(std::string_view text);

/// A positive time: seconds, or a number with ms, s, m or h. Nothing for any other text, zero,
/// negative values and more than ten years.
[[nodiscard]] std::optional<Duration> parse_time(std::string_view text);

/// `text` without blanks at its ends.
[[nodiscard]] std::string_view trimmed(std::string_view text);

/// With a to z instead of A to Z, in no language's rules.
[[nodiscard]] std::string lower(std::string text);

}  // namespace ddprun
