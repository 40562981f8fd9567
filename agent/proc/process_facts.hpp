// process_facts: what /proc says of one process now, and which processes of a rank do its work.
// Needs no right beyond those of the user who runs it; what is not readable stays empty. Blocks at
// most as long as one of them is in execve. Thread rule: none.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/proc/process_table.hpp"
#include "base/stacks.hpp"

namespace ddprun {

/// Its name, state and wait channel alone, which /proc tells without a wait of its own. State '?':
/// it has ended.
[[nodiscard]] ProcessStacks read_state(pid_t process);

/// Without stacks but for the kernel's. State '?': it has ended.
[[nodiscard]] ProcessStacks read_process(pid_t process);

/// Whether ptrace can stop it, and it is worth it: it runs or sleeps. One that is stopped, or in an
/// uninterruptible sleep, is left alone.
[[nodiscard]] bool can_be_traced(const ProcessStacks& process);

/// Whether it handles or blocks that signal, or that is unknown; one that ended without being
/// waited for is still known.
[[nodiscard]] bool may_handle(pid_t process, int signal);
/// The same of one that is to continue. A shell blocks all signals while it starts a command: one
/// that works and blocks the signal is looked at again, for 2 ms at most.
[[nodiscard]] bool handles(pid_t process, int signal);
[[nodiscard]] bool ignores(pid_t process, int signal);

/// Whether it runs Python, as far as the name of its program says so.
[[nodiscard]] bool runs_python(pid_t process);

/// What it holds below /dev/nvidia, at most kDevicesHeldMax: "/dev/nvidia2". What /proc does not
/// show is missing.
inline constexpr std::size_t kDevicesHeldMax = 16;
[[nodiscard]] std::vector<std::string> gpus_held_by(pid_t process);

/// The leader of a rank; where that only waits for its children, as a shell does, these instead,
/// and so on. At most kProcessesPerRankMax.
inline constexpr std::size_t kProcessesPerRankMax = 4;
[[nodiscard]] std::vector<pid_t> working_processes(pid_t leader,
                                                   const std::vector<ProcessEntry>& all);

/// Processes of one rank that are looked at, its leader first.
inline constexpr std::size_t kProcessesOfRankMax = 64;
[[nodiscard]] std::vector<pid_t> pids_of(const std::vector<ProcessEntry>& processes);

/// Of the leader's children, and those of what descends from it, those that ended without success
/// and were not waited for; at most kProcessesOfRankMax. What another user owns is missing.
[[nodiscard]] std::vector<EndedChild> ended_children_of(pid_t leader,
                                                        const std::vector<ProcessEntry>& all);

/// The status that a process will have which has begun to exit and cannot be waited for yet: the
/// kernel tears down its memory first. None: it has not begun, or is gone, or a thread of it is in
/// uninterruptible sleep and may stay there, or it ends with exit code 0, which is also what /proc
/// says to those who may not know.
[[nodiscard]] std::optional<ExitStatus> status_of_exiting(pid_t process);
/// The same without its threads, from the text of /proc/PID/stat.
[[nodiscard]] std::optional<ExitStatus> parse_exiting(std::string_view stat);
/// Whether it has begun to exit with exit code 0.
[[nodiscard]] bool is_exiting_with_0(pid_t process);

/// Aborts a Python process that catches SIGABRT, as with PYTHONFAULTHANDLER=1: it writes the stacks
/// of all its threads on its stderr, where py-spy is missing the only way to know them, and ends
/// without a core dump. False: it is another process, or cannot act on the signal (stopped, in
/// state D), and has got none. A child that was not reaped.
[[nodiscard]] bool abort_with_python_stacks(pid_t process);

}  // namespace ddprun
