// How values are written on the command line and in variables: numbers, times, lists. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace ddprun {

/// The error of a command line: exit code 2.
[[nodiscard]] inline Error usage(std::string sentence) {
  return {ErrorKind::kUsage, std::move(sentence)};
}

/// Like Python's int(): surrounding white space, a sign, digits with single underscores between
/// them. nullopt for any other text and beyond 64 bits.
[[nodiscard]] std::optional<std::int64_t> parse_integer(std::string_view text);

/// Like Python's float(), without infinity and NaN.
[[nodiscard]] std::optional<double> parse_number(std::string_view text);

/// Seconds, or a number with ms, s, m or h, in whole milliseconds: less than one is 0. nullopt for
/// any other text, negative values and more than ten years.
[[nodiscard]] std::optional<Duration> parse_time(std::string_view text);

/// The same, and nullopt for 0.
[[nodiscard]] std::optional<Duration> parse_positive_time(std::string_view text);

/// Bytes: digits, with K, M, G or T (or KiB, MiB, ...) for powers of 1024. nullopt for any other
/// text and beyond 63 bits.
[[nodiscard]] std::optional<std::uint64_t> parse_size(std::string_view text);

/// "1", "true", "yes", "on" are on, "0", "false", "no", "off" are off; any other number as in
/// torchrun.
[[nodiscard]] Result<bool> parse_switch(const std::string& variable, const std::string& value);

/// 1 to 18 digits, as schedulers write numbers; nullopt for any other text.
[[nodiscard]] std::optional<std::uint64_t> parse_digits(std::string_view text);

/// The parts between commas, empty ones included; one empty part for an empty text.
[[nodiscard]] std::vector<std::string> split_list(std::string_view text);

/// The same, where two commas in a row stand for one comma inside a part, as in torchrun's filters;
/// no part for an empty text.
[[nodiscard]] std::vector<std::string> split_escaped_list(std::string_view text);

/// "a, b, c".
[[nodiscard]] std::string joined(const std::vector<std::string>& words);

/// `text` without leading and trailing white space.
[[nodiscard]] std::string_view trimmed(std::string_view text);

/// Converts A to Z to lower case, independent of the locale.
[[nodiscard]] std::string lower(std::string text);

}  // namespace ddprun
