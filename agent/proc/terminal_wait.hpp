// terminal_wait: whether a process waits for the user to type, from the system call that each of
// its threads is in. False where the kernel does not show that: it takes the right to trace it.
// Blocks at most as long as one of them is in execve. Thread rule: none.
#pragma once

#include <sys/types.h>

namespace ddprun {

/// Whether that thread reads a terminal, or waits in poll(), select() or epoll for one, perhaps
/// among others.
[[nodiscard]] bool waits_for_terminal(pid_t process, pid_t thread);

/// The same of a leader and what descends from it: of their main threads, or of all.
enum class Threads { kMain, kAll };
[[nodiscard]] bool rank_waits_for_terminal(pid_t leader, Threads which);

}  // namespace ddprun
