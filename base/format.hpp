// The format of sizes, counts, durations and tables in all messages. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"

namespace ddprun {

/// "512 B", "64 MiB", "479.8 GiB": at most one decimal, and none that is 0.
[[nodiscard]] std::string bytes_text(std::int64_t bytes);

/// "1 rank", "3 ranks": for nouns whose plural takes an s.
[[nodiscard]] inline std::string count_text(long long count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

/// "2 to 4 nodes", or as count_text() if both are equal.
[[nodiscard]] inline std::string count_text(long long least, long long most,
                                            std::string_view noun) {
  const std::string text = count_text(most, noun);
  return least == most ? text : std::to_string(least) + " to " + text;
}

/// "20 ms", "1.4 s", "30 s", "1 min 7 s", "5 min", "3 h 12 min": two figures or
/// units at most, rounded to the nearest; a duration configured in whole units is shown in them.
[[nodiscard]] std::string duration_text(Duration duration);

/// How long something took: "in 20 ms", with "after" "after 20 ms"; below a millisecond "at once".
[[nodiscard]] std::string span_text(std::string_view preposition, Duration duration);

/// The seconds alone, exact to the millisecond, as an option takes them: "90", "0.25".
[[nodiscard]] std::string seconds_text(Duration duration);

/// The rows, each column as wide as its widest cell, two blanks between them; the last column is
/// not filled up. Every row has as many cells as the first.
[[nodiscard]] std::string in_columns(const std::vector<std::vector<std::string>>& rows);

}  // namespace ddprun
