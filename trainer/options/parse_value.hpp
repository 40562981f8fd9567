// Parses flag values and checks their bounds. Every function throws UsageError with one sentence
// that names the flag, the given text and the valid values. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ddprun::trainer {

/// A flag as written on the command line ("--lr") with its text.
struct FlagValue {
  std::string flag;
  std::string text;
};

struct Bounds {
  std::uint64_t least = 0;
  std::uint64_t most = 0;
};
[[nodiscard]] std::uint64_t whole_in(const FlagValue& value, const Bounds& bounds);

struct Interval {
  double least = 0;
  double most = 0;
  enum class Ends { kClosed, kOpenBelow } ends = Ends::kClosed;
};
/// Finite numbers only.
[[nodiscard]] double real_in(const FlagValue& value, const Interval& interval);

/// Comma-separated numbers above 0, in ascending order.
[[nodiscard]] std::vector<double> rising_reals(const FlagValue& value);

/// "30", "30s", "500ms", "2m", "1h"; "off" and "0" are 0. At most a week.
[[nodiscard]] std::chrono::milliseconds duration_of(const FlagValue& value);

/// The number that belongs to the given name; the error lists all names.
using Names = std::vector<std::pair<std::string, int>>;
[[nodiscard]] int one_of(const FlagValue& value, const Names& names);

/// The candidate with the smallest edit distance, if it is close enough to be a typing mistake;
/// otherwise empty.
[[nodiscard]] std::string nearest(const std::string& word,
                                  const std::vector<std::string>& candidates);

}  // namespace ddprun::trainer
