// Parses numbers and words of the command line. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"

namespace ddprun {

/// Like Python's int(): surrounding white space, a sign, digits with single underscores between
/// them. nullopt for any other text and beyond 64 bits.
[[nodiscard]] std::optional<std::int64_t> parse_integer(std::string_view text);

/// Like Python's float(), without infinity and NaN.
[[nodiscard]] std::optional<double> parse_number(std::string_view text);

/// A positive duration: seconds, or a number with ms, s, m or h. nullopt for any other text, zero,
/// negative values and more than ten years.
[[nodiscard]] std::optional<Duration> parse_time(std::string_view text);

/// `text` without leading and trailing white space.
[[nodiscard]] std::string_view trimmed(std::string_view text);

/// Converts A to Z to lower case, independent of the locale.
[[nodiscard]] std::string lower(std::string text);

}  // namespace ddprun
