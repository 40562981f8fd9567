// Processes that are not the test's children: what a probe started, and a stranger that got a
// number.
#pragma once

#include <linux/sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cstdint>
#include <sstream>

#include "tests/proc/support.hpp"

namespace proc_test {

/// The pids of the probe's two children: one in its group, one in a session of its own.
struct Grandchildren {
  explicit Grandchildren(const Pipe& pipe) {
    std::istringstream pids(pipe.read_line());
    pids >> in_group >> in_session;
  }
  ~Grandchildren() {
    if (in_session > 0) ::kill(in_session, SIGKILL);
  }
  Grandchildren(const Grandchildren&) = delete;
  Grandchildren& operator=(const Grandchildren&) = delete;
  pid_t in_group = 0;
  pid_t in_session = 0;
};

/// A process with a number of the test's choice, the leader of a group of its own.
class Stranger {
 public:
  explicit Stranger(pid_t wanted) {
    clone_args arguments = {};
    arguments.exit_signal = SIGCHLD;
    arguments.set_tid = reinterpret_cast<std::uintptr_t>(&wanted);
    arguments.set_tid_size = 1;
    Pipe ready;
    pid_ = static_cast<pid_t>(::syscall(SYS_clone3, &arguments, sizeof arguments));
    if (pid_ == 0) {
      ::setpgid(0, 0);
      if (::write(ready.write_end(), "\n", 1) != 1) ::_exit(1);
      while (true) ::pause();
    }
    if (pid_ < 0) WARN("only root can choose a process number: not tested");
    if (pid_ > 0) static_cast<void>(ready.read_line());
  }
  [[nodiscard]] bool here() const { return pid_ > 0; }
  /// Ends it, and says whether it was still running.
  [[nodiscard]] bool untouched() const {
    ::kill(pid_, SIGUSR1);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    return WTERMSIG(status) == SIGUSR1;
  }

 private:
  pid_t pid_ = -1;
};

}  // namespace proc_test
