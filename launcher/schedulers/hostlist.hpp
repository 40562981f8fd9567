// Compressed lists of host names, as Slurm and Open MPI write them to the environment. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.hpp"
#include "base/result.hpp"

namespace ddprun {

// Maximum number of names in a list, and of bytes in a name (DNS); more is an error.
inline constexpr std::size_t kHostlistMax = kNodesMax;
inline constexpr std::size_t kHostBytesMax = kNameBytesMax;

/// Expands "n[1-3,07-09],gpu-a[0-1]b[2-3],x" like `scontrol show hostnames`: a range keeps the
/// width of its first number, several brackets form a product whose last factor varies fastest.
/// Names consist of letters, digits, '-', '_' and '.'. The sentence of an error starts with the
/// list.
[[nodiscard]] Result<std::vector<std::string>> expand_hostlist(std::string_view text);

/// Converts Open MPI's orte_node_regex, "vm,node[2:1-3]-ib@0(4)", to Slurm's notation:
/// "vm,node[01-03]-ib". Any other text is returned unchanged.
[[nodiscard]] std::string hostlist_of_node_regex(std::string_view text);

}  // namespace ddprun
