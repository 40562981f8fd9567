// What the front and the guard are made of: the processes below one of them, their end, and the
// loop that waits for it.
#pragma once

#include <signal.h>
#include <sys/types.h>
#include <time.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <span>

#include "agent/proc/cgroup.hpp"

namespace ddprun::front {

// ProcessTree: what /proc says about the processes below this one, without an allocation: it is
// used where little memory may be touched, and in a signal handler of a process that may have been
// interrupted inside malloc. A picture of one moment. Ownership: a mapping of its own.

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

// sweep: SIGKILL to everything below this process, and what remains of it collected. Allocates
// nothing, so that it may run in a signal handler. Thread rule: any one thread, with SIGCHLD
// blocked; nothing else of the process may wait for children meanwhile.

// How long what is left is killed and waited for, where nothing was said about it before.
inline constexpr std::chrono::seconds kSweepMax{5};

struct Swept {
  int ended = 0;   // children collected: everything below comes here when its parent is gone
  int killed = 0;  // of these, by this sweep
  int left = 0;    // still alive
  std::array<ProcessSeen, 4> named = {};  // the first of those that were alive last
};

/// Kills and reaps until nothing is left but what is spared, `limit` at most. For kPipeEndWait it
/// leaves out processes that end with their pipe; then `cgroups` are killed, too, in which no fork
/// escapes. Processes that fork
/// meanwhile are killed in the next pass; process groups are killed as a whole, which no fork
/// escapes. Only a process whose parent is a child subreaper is found for certain.
[[nodiscard]] Swept sweep(const Spared& spared, std::chrono::milliseconds limit,
                          std::span<const Cgroup> cgroups = {});

// Supervisor: the loop of the front and of the guard, from the fork of the process below to the
// exit code. Thread rule: the only thread of its process, with the signals of supervised_signals()
// blocked.

enum class Role { kFront, kGuard };

/// What the front takes and forwards: all that can be blocked, but for SIGTTIN and SIGTTOU
/// (they stop the front), for those that a fault raises, and for those that were ignored at the
/// start (nohup).
[[nodiscard]] sigset_t supervised_signals();

struct Supervised {
  Role role = Role::kFront;
  pid_t child = 0;   // the guard, or the agent
  pid_t parent = 0;  // of the guard: the front
  sigset_t signals = {};
  Spared spared;
};

/// Forwards signals until the child has ended, ends everything below, says what it had to end, and
/// returns the exit code: the child's, or 128 + the signal that killed it. The guard also ends
/// everything when its parent has ended.
[[nodiscard]] int supervise(const Supervised& supervised);

}  // namespace ddprun::front
