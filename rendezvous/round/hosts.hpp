// Host names as people read them: natural order ("gpu-2" before "gpu-10") and short lists. Pure
// functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ddprun::round {

/// Digits compare as numbers, the rest as bytes; equal ones by length ("gpu-1" before "gpu-01").
[[nodiscard]] bool natural_less(std::string_view left, std::string_view right);

/// "gpu-01..gpu-06, head": sorted naturally, neighbours in number joined, repeated names counted
/// ("head x3"), cut to a few names with the rest counted ("and 990 more"). "none" for an empty
/// list.
[[nodiscard]] std::string host_list(std::vector<std::string> hosts);

/// "2, 3, 6..9", cut like a host list. The numbers must be sorted.
[[nodiscard]] std::string number_list(const std::vector<int>& numbers);

}  // namespace ddprun::round
