// fault_handler: the Python stacks of a worker that is about to be killed, written by itself. Where
// py-spy is missing, nothing else knows them. Thread rule: none.
#pragma once

#include <sys/types.h>

namespace ddprun {

/// Aborts a Python process that catches SIGABRT, as with PYTHONFAULTHANDLER=1: it writes the stacks
/// of all its threads on its stderr, and ends without a core dump. False: it is another process, or
/// cannot act on the signal (stopped, in state D), and has got none. A child that was not reaped.
[[nodiscard]] bool abort_with_python_stacks(pid_t process);

}  // namespace ddprun
