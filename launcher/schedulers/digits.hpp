// Numbers as schedulers write them to the environment: digits only. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/environment.hpp"

namespace ddprun {

/// Parses 1 to 18 digits; nullopt for any other text.
[[nodiscard]] std::optional<std::uint64_t> parse_digits(std::string_view text);

/// The variable as a number up to `most`; nullopt if it is not set, not a number or larger.
[[nodiscard]] std::optional<int> count_in(const Environment& environment,
                                          const std::string& variable, int most);

}  // namespace ddprun
