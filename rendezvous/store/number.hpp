// The store keeps numbers as decimal text and parses them as C's strtoll does. Pure.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ddprun::store {

/// Accepts leading white space and a sign; parsing stops at the first non-digit. Returns nullopt if
/// there are no digits or the number does not fit in 64 bits.
[[nodiscard]] inline std::optional<std::int64_t> parse_number(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\n\v\f\r");
  if (begin == std::string_view::npos) return std::nullopt;
  text.remove_prefix(begin);
  if (text.front() == '+') {
    text.remove_prefix(1);
    if (!text.empty() && text.front() == '-') return std::nullopt;
  }
  std::int64_t number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end.ec != std::errc()) return std::nullopt;
  return number;
}

/// The sum, or nullopt if it overflows.
[[nodiscard]] inline std::optional<std::int64_t> checked_add(std::int64_t left,
                                                             std::int64_t right) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(left, right, &sum)) return std::nullopt;
  return sum;
}

}  // namespace ddprun::store
