// Which way each output stream of a worker goes: the rule alone, pure, no thread rule.
#pragma once

namespace ddprun {

enum class Stream { kStdout, kStderr };

/// What the operator asked for, about one stream of one worker.
struct StreamWish {
  bool redirected = false;  // --redirects names it
  bool teed = false;        // --tee names it
  bool shown = true;        // its rank passes --local-ranks-filter
  bool quoted = true;       // un-redirected stderr goes through the agent; off: --console=raw
  bool files = true;        // off: --log-dir=/dev/null
};

enum class Route {
  kInherit,  // the launcher's own open file, untouched
  kPass,     // a pipe: byte for byte to the console, tail kept
  kKeep,     // a pipe: only the tail is kept, nothing shown
  kDiscard,  // /dev/null
  kFile,     // the worker writes the log file itself
  kTee,      // a pipe: raw bytes to the log file, prefixed whole lines to the console
};

/// A tee implies a redirect; without files neither has an effect; a rank that is not shown writes
/// its tee'd streams to the file only and its other streams nowhere, except that stderr is kept for
/// the report.
[[nodiscard]] Route route_of(Stream stream, const StreamWish& wish);

}  // namespace ddprun
