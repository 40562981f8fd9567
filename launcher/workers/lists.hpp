// Lists separated by commas. Pure, no thread rule.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ddprun {

/// The parts between commas, empty ones included; one empty part for an empty text.
[[nodiscard]] std::vector<std::string> split_list(std::string_view text);

/// The same, where two commas in a row stand for one comma inside a part, as in torchrun's filters;
/// no part for an empty text.
[[nodiscard]] std::vector<std::string> split_escaped_list(std::string_view text);

}  // namespace ddprun
