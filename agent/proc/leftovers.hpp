// What processes that got SIGKILL leave in file systems. Thread rule: none; the calls may take as
// long as the file system does. Errors: what cannot be read is not named, what cannot be removed
// stays.
#pragma once

#include <sys/types.h>
#include <sys/un.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ddprun {

/// None: the path is too long.
[[nodiscard]] std::optional<sockaddr_un> unix_address(const std::string& path);
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

/// Names of POSIX shared memory and semaphores (shm_open(3), sem_open(3)): they occupy memory until
/// a user removes them.
class SharedNames {
 public:
  /// Remembers the names that are there now.
  explicit SharedNames(std::string directory = "/dev/shm");

  struct Left {
    std::vector<std::string> names;  // sorted
    std::int64_t bytes = 0;          // that they occupy
  };
  /// The files of this user that have come since and that no process has open or mapped. The
  /// kernel proves the latter: it grants a write lease on no other file (fcntl(2), F_SETLEASE).
  [[nodiscard]] Left left() const;

 private:
  std::string directory_;
  std::optional<std::set<std::string>> before_;  // none: too many to look at
};

}  // namespace ddprun
