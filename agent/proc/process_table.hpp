// What /proc says about processes. A picture of one moment: what it names may be gone when it is
// read. Thread rule: the io_context's thread.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace ddprun {

struct ProcessEntry {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  unsigned long long started = 0;  // in clock ticks since boot
  char state = 0;                  // as ps shows it, of the main thread
  bool ended = false;  // a zombie: no thread runs any more, its parent has not asked yet
  std::string name;    // as ps shows it, at most 15 bytes
};

/// Every process that can be seen; none where /proc cannot be read, or only in part because
/// descriptors have run out. Costs about 10 µs for each.
[[nodiscard]] std::optional<std::vector<ProcessEntry>> list_processes();

/// None when it is gone or cannot be seen.
[[nodiscard]] std::optional<ProcessEntry> find_process(pid_t pid);

/// Children of this process, alive or zombies, as far as that can be read.
[[nodiscard]] std::vector<pid_t> children_of_this_process();

}  // namespace ddprun
