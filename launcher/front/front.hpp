// The front: the process that the user starts, and below it the guard and the agent.
//
//   ddprun   front   forwards signals to the agent, and exits with its code
//    └ ddguard  guard   a second supervisor, so that no single death leaves a process unsupervised
//       └ ddprun   agent   the launcher; the workers are its children
//
// Front and guard are child subreapers: whatever the agent or its workers started comes to them
// when its parent dies, in whatever session it is. When the process below one of them has ended, it
// kills what is left; when the process above has ended, the guard and the agent do. They learn of
// that by the parent-death signal, which the agent takes in a handler, since its event loop may be
// stuck. The guard's is SIGCONT: a stopped guard ends nothing. Signals travel with rt_sigqueueinfo,
// which keeps the original sender, and to the guard inside one real-time signal, so that several
// that wait are not merged. The guard drops what reaches it directly: a service manager that
// signals a whole control group reaches front and agent, too. Thread rule: call once, before the
// process has a second thread.
#pragma once

#include <functional>
#include <string>

namespace ddprun {

/// Calls `agent` in a process of its own, below a front and a guard, and returns its result in that
/// process; the other two never return. The agent has a session of its own and the caller's signal
/// mask. Where the kernel refuses a process, `agent` is called with fewer supervisors, or with
/// none. `argc` and `argv` are those of main(): the guard writes its title over them, so that a
/// `pkill -f` for the training program spares it.
[[nodiscard]] int run_below_front(int argc, char** argv, const std::function<int()>& agent);

}  // namespace ddprun

// A run in the background: a process with a session of its own, whose output goes to a file.
// Thread rule: before the process has a second thread.
namespace ddprun::front {

struct Background {
  bool is_parent = false;
  int started = -1;    // in the background process: gets one line once the run has started
  std::string line{};  // in the parent: that line; empty: the process ended before
  int exit_code = 0;   // in the parent: of the process, if it ended before
  int process = 0;     // in the parent: its pid; 0: there is none, errno says why
};

/// Forks. The parent waits until the run has started or the process has ended, and passes SIGINT,
/// SIGTERM and SIGHUP on to it meanwhile. `console`: an open file, which is closed here.
[[nodiscard]] Background go_to_background(int console);

}  // namespace ddprun::front
