// output_plan: from the log options to the streams of each worker of a start. Thread rule: one
// thread.
#pragma once

#include <memory>
#include <string>

#include "agent/core/launch_config.hpp"
#include "agent/proc/log_tree.hpp"
#include "agent/proc/output.hpp"

namespace ddprun {

/// What the workers of one start share.
struct OutputContext {
  AttemptLogs logs;
  std::shared_ptr<FilterLog> out_filter;  // null without --duplicate-stdout-filters
  std::shared_ptr<FilterLog> err_filter;
  std::string hostname;
  Warn warn;
};

/// Opens the filter logs of the start. Fails with kSystem when one cannot be made.
[[nodiscard]] Result<OutputContext> open_output_context(const LogConfig& config, AttemptLogs logs,
                                                        std::string hostname, Warn warn);

[[nodiscard]] WorkerOutputPlan plan_output(const LaunchConfig& config, const OutputContext& context,
                                           LocalRank local_rank, Rank rank);

/// The file to look at after a failure: the log of stderr, else of stdout, else none (empty).
[[nodiscard]] std::string log_to_name(const WorkerOutputPlan& plan);

}  // namespace ddprun
