// A run in the background: a process with a session of its own, whose output goes to a file.
// Thread rule: before the process has a second thread.
#pragma once

#include <string>

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
