// Unix sockets and named pipes of processes that got SIGKILL: their files stay, and refuse
// connections or have no reader. Thread rule: none; the calls may take as long as the file system
// does. Errors: what cannot be removed stays.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace ddprun {

/// Removes a socket where no process listens any more.
void remove_if_refused(const std::string& path);

/// Removes a named pipe that no process reads any more. Returns whether it, or another file, is
/// still there.
[[nodiscard]] bool remove_if_unread(const std::string& path);

/// The names of pipes for timers end in this.
inline constexpr const char* kTimersSuffix = ".timers";

/// The name of a pipe that is made for `path`, until it is read: PATH.PID-NONCE.new, of this
/// process.
[[nodiscard]] std::string unfinished_pipe(const std::string& path);
/// Whether a file has the name of such a pipe, of a process that has ended.
[[nodiscard]] bool is_left_unfinished(std::string_view name);
/// Removes those that agents left which were killed while they made a pipe for `path`.
void remove_unfinished_pipes(const std::string& path);

/// The same for the sockets and pipes PID-... of `owner` in `directory`, if that is this user's
/// alone. Another PID namespace may have a process with that number: where one listens, nothing is
/// removed.
void remove_left_sockets(const std::string& directory, pid_t owner);

}  // namespace ddprun
