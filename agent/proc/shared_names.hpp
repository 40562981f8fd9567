// Names of POSIX shared memory and semaphores (shm_open(3), sem_open(3)) that processes which got
// SIGKILL leave behind: they occupy memory until a user removes them. Thread rule: none. Errors:
// what cannot be read is not named.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ddprun {

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
