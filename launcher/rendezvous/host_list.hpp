// Nodes that are known beforehand, in the same order on every one of them: --hosts, or what a
// scheduler says. Each is numbered by its place, and the first runs the coordinator. Pure but for
// the facts it asks the machine. No thread rule.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/types.hpp"
#include "launcher/rendezvous/endpoint.hpp"
#include "launcher/rendezvous/nodes.hpp"
#include "launcher/rendezvous/plan.hpp"

namespace ddprun {

struct HostList {
  std::vector<Endpoint> hosts;  // at least one; the first one's port is the coordinator's, or 29400
  std::size_t own = 0;          // this node's place, below hosts.size()
  NodeRange nodes;              // MAX is the number of hosts
  std::string source;           // what sentences call the list: "--hosts", "SLURM_JOB_NODELIST"
};

/// c10d over the list. A list of one host is a single node, without a coordinator. Takes the list
/// at its word: the caller has refused options that contradict it.
[[nodiscard]] Result<RendezvousPlan> plan_host_list(const HostList& list, const RunId& run_id,
                                                    const RendezvousInput& input);

}  // namespace ddprun
