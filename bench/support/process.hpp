// What the kernel tells about another process: its CPU time and its memory. For benchmarks.
#pragma once

#include <cstddef>
#include <string>

namespace ddprun::bench {

/// Of all its threads, as the scheduler counts them; 0 when there is no such process.
[[nodiscard]] double cpu_seconds(const std::string& pid);
[[nodiscard]] std::size_t resident_kib(const std::string& pid);
/// What would be free if it ended: its own pages, not those it shares with other processes.
[[nodiscard]] std::size_t private_kib(const std::string& pid);

}  // namespace ddprun::bench
