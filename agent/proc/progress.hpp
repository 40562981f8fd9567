// progress: what ranks do, as the kernel counts it and shows their system calls, for --hang-timeout
// and prompts. A pass over /proc, and two files for each process of a rank; with a close look two
// for each thread and its descriptors. Blocks at most as long as one of them is in execve. Thread
// rule: none.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "base/clock.hpp"
#include "base/rank_progress.hpp"

namespace ddprun {

/// Processor time that one process has used so far, by all its threads.
[[nodiscard]] Duration cpu_of(pid_t process);

/// Of these processes together.
[[nodiscard]] RankProgress progress_of(const std::vector<pid_t>& processes);

/// Of the processes of each leader: itself and what descends from it. What another user owns, or a
/// process that has ended meanwhile, counts as no more.
[[nodiscard]] std::vector<RankProgress> read_progress(const std::vector<pid_t>& leaders);
/// The same with a CloseLook of each. `store_port`: of the round's store.
[[nodiscard]] std::vector<RankProgress> read_progress_closely(const std::vector<pid_t>& leaders,
                                                              std::uint16_t store_port);

/// Whether a leader, or what descends from it, waits for the user to type: reads a terminal, or
/// waits in poll(), select() or epoll for one, perhaps among others. Of their main threads, or of
/// all. False where the kernel does not show system calls: it takes the right to trace.
enum class Threads { kMain, kAll };
[[nodiscard]] bool rank_waits_for_terminal(pid_t leader, Threads which);

}  // namespace ddprun
