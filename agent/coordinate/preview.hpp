// preview: what a run would start on this node (--dry-run), from the functions that plan a round.
// Pure, no thread rule.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/config/launch_config.hpp"
#include "base/environment.hpp"
#include "base/types.hpp"

namespace ddprun {

/// A node of the first round.
struct PreviewNode {
  int group_rank = 0;
  std::string host;  // empty: not known here
  int first_rank = 0;
  int workers = 1;  // of another node: as on this one
  bool here = false;
};

struct PreviewWorker {
  LocalRank local_rank;
  std::optional<Rank> rank;  // unset: decided at the rendezvous
  std::vector<std::string> argv;
  std::optional<std::string> devices;  // as CUDA or HIP names them; unset: all
  std::set<int> cpus;                  // empty: all
  /// What ddprun sets, the rest is inherited; unset: decided at the start.
  std::map<std::string, std::optional<std::string>> environment;
};

struct Preview {
  std::optional<std::string> run_id;  // unset: a new one at each start
  std::string host;                   // this node
  int nodes_min = 1;
  int nodes_max = 1;
  std::optional<std::string> coordinator;  // unset: a single node has none, or it is open
  bool coordinator_is_open = false;        // decided at the start
  bool may_run_coordinator = false;
  std::string log_place;           // where the log directory is made; empty: nowhere
  std::vector<PreviewNode> nodes;  // empty: their places are decided at the rendezvous
  std::vector<PreviewWorker> workers;
};

/// What the plan of a launch knows besides its LaunchConfig.
struct PreviewFacts {
  std::string host;                // this node
  std::vector<std::string> hosts;  // all nodes in their order, where they are known
  bool run_id_is_new = false;
  bool may_run_coordinator = false;
  bool coordinator_is_open = false;
};

/// `environment` is what the workers inherit.
[[nodiscard]] Preview preview(const LaunchConfig& config, const Environment& environment,
                              const PreviewFacts& facts);

}  // namespace ddprun
