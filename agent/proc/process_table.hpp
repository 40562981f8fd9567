// What /proc says about processes. A picture of one moment: what it names may be gone when it is
// read. Thread rule: the io_context's thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ddprun {

// What is read of the environment of a process: a mark beyond it is not found.
inline constexpr std::size_t kEnvironmentBytesMax = 256 * 1024;
// Processes below this one that are looked at to find out whose a connection is: about 20 ms.
inline constexpr std::size_t kProcessesBelowMax = 1000;

struct ProcessEntry {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  pid_t foreground_group = -1;     // of its terminal; -1: it has none
  unsigned long long started = 0;  // in clock ticks since boot
  long long resident_bytes = 0;
  int threads = 0;
  char state = '?';    // as ps shows it: R, S, D, T, Z...
  bool ended = false;  // a zombie: no thread runs any more, its parent has not asked yet
  std::string name;    // as ps shows it, at most 15 bytes
};

/// Calls `visit` for every process that can be seen, each as soon as it is read, in the order of
/// pids: a process that is forked meanwhile is usually still met. False where /proc cannot be read,
/// or only in part because descriptors have run out. Costs about 10 µs for each.
[[nodiscard]] bool for_each_process(const std::function<void(const ProcessEntry&)>& visit);
/// All of them; none where that is false.
[[nodiscard]] std::optional<std::vector<ProcessEntry>> list_processes();
/// One of them; none when it is gone or cannot be read.
[[nodiscard]] std::optional<ProcessEntry> find_process(pid_t pid);

/// The kernel's list of the children of this process's main thread (CLOEXEC, the caller closes it);
/// -1 on a kernel that does not list them (CONFIG_PROC_CHILDREN).
[[nodiscard]] int open_children_of_this_process();
/// Those of it, alive or zombies, in the order in which they became children. Complete, because
/// only this process reaps them.
[[nodiscard]] std::vector<pid_t> read_children(int list);
/// Children of another process, alive or zombies. Some are missing if it reaps others meanwhile.
/// Empty on a kernel that does not list them.
[[nodiscard]] std::vector<pid_t> children_of(pid_t process);

/// Those of `roots` that live, and what descends from them and lives, parents before children, at
/// most `limit`. Costs about 20 µs for each, however many other processes there are; a pass over
/// /proc on a kernel that lists no children.
[[nodiscard]] std::vector<ProcessEntry> processes_below(const std::vector<pid_t>& roots,
                                                        std::size_t limit);

/// Whether a process below this one, among the first kProcessesBelowMax of them, has this effective
/// user id.
[[nodiscard]] bool any_process_below_runs_as(uid_t uid);

/// The value of a variable in the environment that a process was started with; empty where it has
/// none, or has written over it, or may not be read. At most kEnvironmentBytesMax of it are read.
[[nodiscard]] std::string environment_of(pid_t pid, const std::string& variable);

}  // namespace ddprun
