// A count with its noun. Pure.
#pragma once

#include <string>
#include <string_view>

namespace ddprun {

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

}  // namespace ddprun
