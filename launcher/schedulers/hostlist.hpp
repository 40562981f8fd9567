// Compressed lists of host names, as Slurm and Open MPI write them into the environment. Pure, no
// thread rule.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "launcher/limits.hpp"

namespace ddprun {

// Names of one list, and the bytes of one name (DNS); more: an error.
inline constexpr std::size_t kHostlistMax = kNodesMax;
inline constexpr std::size_t kHostBytesMax = 255;

/// "n[1-3,07-09],gpu-a[0-1]b[2-3],x" as `scontrol show hostnames` writes it out: a range keeps the
/// width of its first number, several brackets multiply with the last one running fastest. Names
/// are letters, digits, '-', '_' and '.'. The sentence of an error begins with the list.
[[nodiscard]] Result<std::vector<std::string>> expand_hostlist(std::string_view text);

/// The list of Open MPI's orte_node_regex, "vm,node[2:1-3]-ib@0(4)", in Slurm's notation:
/// "vm,node[01-03]-ib". What is not of this form comes back as it is.
[[nodiscard]] std::string hostlist_of_node_regex(std::string_view text);

}  // namespace ddprun
