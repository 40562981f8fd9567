// output_plan: from the log options to the streams of each worker of a start. Thread rule: one
// thread.
//
// Stderr passes through the agent, because the report quotes its last lines. Stdout is inherited
// where it is another file: ddprun neither delays nor reorders it. If both end in the same file,
// they share one pipe, since two would lose the order in which the worker wrote.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/config/launch_config.hpp"
#include "agent/output/log_tree.hpp"

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

/// The values of the macros in a prefix template.
struct LinePrefixMacros {
  std::string role_name;
  int local_rank = 0;
  int rank = 0;
  std::string hostname;  // as returned by gethostname()
};

/// Replaces ${role_name}, ${local_rank}, ${rank}, ${hostname}, also without braces, and `$$` with
/// `$`; anything else, including unknown macros, is left unchanged. torchrun's default is
/// "[${role_name}${local_rank}]:"; a template replaces all of it, including the colon.
[[nodiscard]] std::string line_prefix(const std::string& text, const LinePrefixMacros& macros);

/// filtered_stdout.log or filtered_stderr.log: the lines, with their prefix, of all tee'd streams
/// of an attempt that contain one of the texts. Shared by the workers of the attempt.
struct FilterLog {
  std::vector<std::string> texts;  // not empty
  std::shared_ptr<LogFile> file;
};

struct StreamPlan {
  Route route = Route::kInherit;
  std::string file;                   // for kFile, kLog and kTee: the path of the log file
  std::shared_ptr<LogFile> log;       // that file; closed by the stream
  std::shared_ptr<FilterLog> filter;  // for kTee; may be null
  std::uint64_t before = 0;           // bytes of the file that were written in rounds before
  bool copied = false;                // with kPass and kLabel: `log` gets all that is read
  bool like_console = false;  // with kLog: the worker sees a terminal, where kPass would give one
};

struct WorkerOutputPlan {
  StreamPlan out;
  StreamPlan err;
  std::string prefix;   // of a tee'd line, see line_prefix()
  std::string label{};  // of a line of Route::kLabel, see rank_label()
  int label_columns = 0;
  Warn warn;  // gets a sentence when a file cannot be written; may be empty
  std::shared_ptr<std::uint64_t> bytes{};  // counts the output that passes through; may be null
};

/// The log files of one worker; null where its stream has none.
struct WorkerFiles {
  std::shared_ptr<LogFile> out;
  std::shared_ptr<LogFile> err;
};

/// What the workers of one start share.
struct OutputContext {
  AttemptLogs logs;
  std::vector<WorkerFiles> files;         // by local rank
  std::shared_ptr<FilterLog> out_filter;  // null without --duplicate-stdout-filters
  std::shared_ptr<FilterLog> err_filter;
  std::string hostname;
  Warn warn;
  std::shared_ptr<std::uint64_t> bytes{};  // of all workers, see WorkerOutputPlan
  std::optional<Result<std::shared_ptr<LogFile>>>
      events{};  // events.jsonl, where it was made with this start
  std::shared_ptr<bool> said_full =
      std::make_shared<bool>(false);  // of files that no option asks for
  std::string no_files{};  // why a start has none that is to have some: see open_or_do_without()
  std::string foreign_directory{};  // with the first start, see LogTree::foreign_sentence()
};

/// Creates the files of the start, which may block. Fails with kSystem when one cannot be made.
[[nodiscard]] Result<OutputContext> open_output_context(const LaunchConfig& config,
                                                        AttemptLogs logs, std::string hostname,
                                                        Warn warn, const DiskThread& disk);

/// The same with the directories of `round`. Without files where they cannot be made and no option
/// asks for them, and in a start after another one: a restart must not fail because the disk has
/// become full, say.
[[nodiscard]] Result<OutputContext> open_or_do_without(const LaunchConfig& config, LogTree& logs,
                                                       RestartCount restarts, Round round,
                                                       const std::string& hostname,
                                                       const Warn& warn, const DiskThread& disk);

[[nodiscard]] WorkerOutputPlan plan_output(const LaunchConfig& config, const OutputContext& context,
                                           LocalRank local_rank, Rank rank);

/// What a process that waits for the place of a lost rank writes, and has as its error file.
struct SpareOutput {
  WorkerOutputPlan plan;
  std::string error_file{};  // empty: none
  std::string no_files{};    // why it has none that is to have some
};
/// Makes its files, which may block.
[[nodiscard]] SpareOutput open_spare_output(const LaunchConfig& config, LogTree& logs, int spare,
                                            const DiskThread& disk);

/// The file that has a stream of a worker where ddprun does not see it; else empty.
[[nodiscard]] std::string unseen_file(const StreamPlan& plan);

/// The log file of a stream; empty: it has none.
[[nodiscard]] std::string log_of(const StreamPlan& plan);

/// The file to look at after a failure: the log of stderr, else of stdout, else none (empty).
[[nodiscard]] std::string log_to_name(const WorkerOutputPlan& plan);

}  // namespace ddprun
