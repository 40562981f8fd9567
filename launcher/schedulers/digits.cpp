#include "launcher/schedulers/digits.hpp"

namespace ddprun {

std::optional<std::uint64_t> parse_digits(std::string_view text) {
  constexpr std::size_t kDigitsMax = 18;  // below 2^63
  if (text.empty() || text.size() > kDigitsMax) return std::nullopt;
  std::uint64_t number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return number;
}

std::optional<int> count_in(const Environment& environment, const std::string& variable, int most) {
  const auto number = parse_digits(value_or(environment, variable, ""));
  if (!number || most < 0 || *number > static_cast<std::uint64_t>(most)) return std::nullopt;
  return static_cast<int>(*number);
}

}  // namespace ddprun
