// RendezvousPlan: how the nodes of a run form it and where its workers find their store, by node
// count, backend, endpoint, run id and the standalone rules of torchrun. Pure except for the facts
// that it queries from the machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/config/launch_config.hpp"
#include "base/result.hpp"
#include "launcher/machine.hpp"
#include "launcher/request/request.hpp"

namespace ddprun {

/// This node may, or must, run the coordinator.
struct CoordinatorPlan {
  enum class Need { kMay, kMust };  // kMay: the process that binds the port first runs it
  Need need = Need::kMay;
  std::string bind;  // an address literal; empty: the wildcard address, v4 and v6
  std::uint16_t port = 0;
  bool rank_by_default = false;  // it is here because no --node-rank was given
};

struct RendezvousPlan {
  RunId run_id;
  StoreConfig store;
  std::optional<RendezvousConfig> rendezvous;  // unset: a single node
  std::optional<CoordinatorPlan> coordinator;  // only with rendezvous
  std::vector<std::string> notes;              // what was given and is unused in this mode
  std::vector<std::string> warnings;           // what was given and is unknown
  std::vector<std::string> hosts;              // all nodes in their order, where they are known
  bool run_id_is_new = false;                  // chosen at this start, not given
  bool coordinator_is_open = false;            // a dry run cannot know its address
};

[[nodiscard]] Result<RendezvousPlan> plan_rendezvous(const Request& request,
                                                     const Machine& machine);

}  // namespace ddprun
