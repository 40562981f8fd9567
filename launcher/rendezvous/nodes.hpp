// The nodes of a run: how many, or which. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "launcher/rendezvous/endpoint.hpp"
#include "launcher/setting.hpp"

namespace ddprun {

/// --nnodes: 0 < min <= max <= kNodesMax.
struct NodeRange {
  int min = 1;
  int max = 1;
};

/// Nodes that are known beforehand, in the same order on every one of them: --hosts, or the list of
/// a scheduler. Each is numbered by its position, and the first runs the coordinator.
struct HostList {
  std::vector<Endpoint> hosts;  // at least one; the first one's port is the coordinator's, or 29400
  std::size_t own = 0;          // this node's position, below hosts.size()
  NodeRange nodes;              // MAX is the number of hosts
  std::string source;           // its name in sentences: "--hosts", "SLURM_JOB_NODELIST"
};

/// N or MIN:MAX.
[[nodiscard]] Result<NodeRange> parse_nodes(const Origin& origin);

/// "4 nodes", "2 to 4 nodes", for sentences.
[[nodiscard]] std::string text_of(const NodeRange& nodes);

}  // namespace ddprun
