// node_report: what a node that takes part in a run of several tells on its console. The failure
// report itself is report.hpp's. Pure, no thread rule.
#pragma once

#include <string>

#include "base/clock.hpp"
#include "base/types.hpp"

namespace ddprun {

struct NodeStartFacts {
  std::string version;
  RunId run;
  int nodes_min = 1;
  int nodes_max = 1;
  std::string coordinator;  // "gpu-01:29400"
  enum class Host { kHere, kElsewhere };
  Host host = Host::kElsewhere;
  int workers = 1;      // of this node
  std::string log_dir;  // empty: no files that stay
  Duration shutdown_timeout{};
  int max_restarts = 0;
};
/// One line: `ddprun 0.1 run 7f3a: 2 to 4 nodes, coordinator gpu-01:29400 (this node), 8 ranks
/// here; ...`.
[[nodiscard]] std::string node_start_line(const NodeStartFacts& facts);

/// `ddprun: note [RUN] text`: what the coordinator, or the wait for it, has to say.
[[nodiscard]] std::string run_note(const std::string& text);

/// The run succeeded: `ddprun: done: all 16 ranks on 2 nodes exited with code 0; 0 restarts; after
/// 12 s`. A spare's says that it was one: exit code 0 without that would look like work done.
enum class NodePart { kTrained, kSpare };
[[nodiscard]] std::string run_done_line(const std::string& text, Duration took, NodePart part);

/// One line for a stop signal while no worker runs.
[[nodiscard]] std::string leaving_line(int signal);
/// One line when this node has left before any worker ran.
[[nodiscard]] std::string left_line(int signal);

}  // namespace ddprun
