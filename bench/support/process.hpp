// CPU time and memory of another process, as reported by the kernel. For benchmarks.
#pragma once

#include <cstddef>
#include <string>

namespace ddprun::bench {

/// CPU seconds of all its threads, from the scheduler's statistics; 0 if the process does not
/// exist.
[[nodiscard]] double cpu_seconds(const std::string& pid);
[[nodiscard]] std::size_t resident_kib(const std::string& pid);
/// Memory that its end would free: private pages, not those shared with other processes.
[[nodiscard]] std::size_t private_kib(const std::string& pid);

}  // namespace ddprun::bench
