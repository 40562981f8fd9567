// Numbers in the store are decimal text, read as C's strtoll reads them. Pure.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ddprun::store {

/// Leading blanks and a sign are accepted, reading stops at the first non-digit. None: no digits at
/// all, or beyond 64 bits.
[[nodiscard]] inline std::optional<std::int64_t> number_in(std::string_view text) {
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

/// The sum, or none where it does not fit.
[[nodiscard]] inline std::optional<std::int64_t> sum_of(std::int64_t left, std::int64_t right) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(left, right, &sum)) return std::nullopt;
  return sum;
}

}  // namespace ddprun::store
