// output_plan: from the log options to the streams of each worker of a start. Thread rule: one
// thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/config/launch_config.hpp"
#include "agent/output/log_tree.hpp"
#include "agent/output/output.hpp"

namespace ddprun {

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
  std::shared_ptr<std::uint64_t> bytes{};   // of all workers, see WorkerOutputPlan
  std::optional<Result<LogFile>> events{};  // events.jsonl, where it was made with this start
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
