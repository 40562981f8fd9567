// Numbers as schedulers write them into the environment: digits and nothing else. Pure, no thread
// rule.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/environment.hpp"

namespace ddprun {

/// 1 to 18 digits; nothing for any other text.
[[nodiscard]] std::optional<std::uint64_t> parse_digits(std::string_view text);

/// The variable as a number up to `most`; nothing when it is unset, no number or larger.
[[nodiscard]] std::optional<int> count_in(const Environment& environment,
                                          const std::string& variable, int most);

}  // namespace ddprun
