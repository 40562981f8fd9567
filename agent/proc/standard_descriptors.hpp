// Initial set-up of a process that spawns workers, before it opens anything. Thread rule: call at
// the start of main, before any other thread exists.
#pragma once

namespace ddprun {

/// Opens /dev/null for each of the descriptors 0, 1 and 2 that is closed: otherwise a socket would
/// get that number and every worker would inherit it as stdin or stdout. Ignores SIGPIPE and
/// SIGXFSZ, so that writing to a closed console or a log file at its size limit is an error of
/// write(), and resets SIGCHLD to its default, because exit statuses are lost if it is ignored.
void prepare_process();

}  // namespace ddprun
