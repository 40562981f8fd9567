// ProcessTree: what /proc says about the processes below this one, without an allocation: it is
// used where little memory may be touched, and in a signal handler of a process that may have been
// interrupted inside malloc. A picture of one moment. Ownership: a mapping of its own.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>

namespace ddprun::front {

struct ProcessSeen {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  char state = '?';
  bool below = false;
  std::array<char, 16> name = {};  // as ps shows it, ends with a zero

  [[nodiscard]] bool ended() const { return state == 'Z' || state == 'X'; }
};

/// Children of this process that are left alone, with all below them.
struct Spared {
  bool own_session = false;  // those in this process's session
  std::array<pid_t, 64> children = {};
  std::size_t count = 0;

  [[nodiscard]] bool covers(const ProcessSeen& child, pid_t session) const;
};

/// One process; false when it is gone or /proc cannot be read.
[[nodiscard]] bool read_process(pid_t pid, ProcessSeen& seen);

class ProcessTree {
 public:
  ProcessTree();
  ~ProcessTree();
  ProcessTree(const ProcessTree&) = delete;
  ProcessTree& operator=(const ProcessTree&) = delete;

  /// Reads /proc and marks what is below this process, but not what is spared. False when /proc
  /// cannot be read. Costs about 10 µs for each process of the machine.
  [[nodiscard]] bool read(const Spared& spared);

  [[nodiscard]] const ProcessSeen* begin() const { return seen_; }
  [[nodiscard]] const ProcessSeen* end() const { return seen_ + count_; }

 private:
  [[nodiscard]] bool list();
  void take_names(int proc, const char* entries, long bytes);
  void mark(const Spared& spared);
  [[nodiscard]] const ProcessSeen* find(pid_t pid) const;

  ProcessSeen* seen_ = nullptr;  // by pid
  std::size_t count_ = 0;
};

}  // namespace ddprun::front
