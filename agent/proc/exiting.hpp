// exiting: what /proc says of a process that has begun to exit and cannot be waited for yet: the
// kernel tears down its memory first. Thread rule: none.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string_view>

#include "agent/proc/cgroup.hpp"
#include "agent/proc/orphans.hpp"
#include "base/exit_status.hpp"

namespace ddprun {

/// The status that it will have; none: it has not begun to exit, or is gone, or a thread of it is
/// in uninterruptible sleep and may stay there, or it ends with exit code 0, which is also what
/// /proc says to those who may not know.
[[nodiscard]] std::optional<ExitStatus> status_of_exiting(pid_t process);
/// The same without its threads, from the text of /proc/PID/stat (proc(5)).
[[nodiscard]] std::optional<ExitStatus> parse_exiting(std::string_view stat);

/// Whether it has begun to exit with exit code 0.
[[nodiscard]] bool is_exiting_with_0(pid_t process);

/// Whether nothing else lives in its cgroup, or without one, among its children and in its session
/// among the orphans. What has left them is not found. False where the kernel lists no children.
[[nodiscard]] bool is_alone(pid_t process, const std::optional<Cgroup>& leaf, Orphans& orphans);

}  // namespace ddprun
