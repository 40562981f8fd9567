// What a process that spawns workers must put in order about itself, once, before it opens
// anything. Thread rule: call at the start of main, before any other thread exists.
#pragma once

namespace ddprun {

/// Opens /dev/null on each of the descriptors 0, 1, 2 that is closed: otherwise a socket would get
/// that number and every worker would inherit it as its stdin or stdout. Ignores SIGPIPE and
/// SIGXFSZ (a closed console and a log file at its limit are errors of write(), not deaths) and
/// gives SIGCHLD its default back (ignored, it would swallow exits).
void prepare_process();

}  // namespace ddprun
