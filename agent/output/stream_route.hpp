// Decides where each output stream of a worker goes. Pure.
//
// Stderr passes through the agent, because the report quotes its last lines. Stdout is inherited
// where it is another file: ddprun neither delays nor reorders it. If both end in the same file,
// they share one pipe, since two would lose the order in which the worker wrote.
#pragma once

namespace ddprun {

enum class Stream { kStdout, kStderr };

/// The options for one stream of one worker.
struct StreamWish {
  /// What the console shows of a stream that is neither redirected nor tee'd.
  enum class Show {
    kAsItIs,    // --console=quoted, raw
    kLabelled,  // whole lines with a label: --console=prefix, and stderr with rank0
    kPassed,    // as it is, through the agent: stdout of rank 0 among labelled streams
    kInFile,  // nothing, where there are files: stdout of other ranks with rank0. The agent writes
              // them: a disk that is full does not reach a worker
  };
  Show show = Show::kAsItIs;
  bool redirected = false;  // --redirects names it
  bool teed = false;        // --tee names it
  bool shown = true;        // its rank passes --local-ranks-filter
  bool quoted = true;    // stderr, if not redirected, passes through the agent; off: --console=raw
  bool files = true;     // off: --log-dir=/dev/null
  bool kept = false;     // --log-dir is given, and no streams are named: all have files, too
  bool limited = false;  // --log-max
};

enum class Route {
  kInherit,  // the launcher's file description, unchanged
  kPass,     // a pipe, or where stderr is a terminal a pseudoterminal: copied byte for byte to the
             // console, the tail is kept
  kLabel,    // the same as whole lines, each with the label of the rank
  kKeep,     // a pipe: only the tail is kept, nothing is shown
  kDiscard,  // /dev/null
  kFile,     // the worker writes the log file itself
  kLog,      // a pipe: raw bytes to the log file, which has a limit
  kTee,      // a pipe: raw bytes to the log file, prefixed complete lines to the console
};

/// Whether the stream has a log file.
[[nodiscard]] constexpr bool is_logged(Route route) {
  return route == Route::kFile || route == Route::kLog || route == Route::kTee;
}

/// A tee implies a redirect; without files neither has an effect. A rank that is not shown writes
/// its tee'd streams to the file only and discards the others, except that stderr is kept for the
/// report.
[[nodiscard]] Route route_of(Stream stream, const StreamWish& wish);

/// Whether the stdout of a worker goes the way of its stderr, because both have the same end and
/// look: in two ways they would lose their order. `one_file`: ddprun's own two are the same file.
[[nodiscard]] constexpr bool shares_a_way(Route out, Route err, bool one_file) {
  const bool same_look = err == Route::kPass    ? out == Route::kInherit
                         : err == Route::kLabel ? out == Route::kLabel
                                                : false;
  return one_file && same_look;
}

}  // namespace ddprun
