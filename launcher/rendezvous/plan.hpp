// RendezvousPlan: how the nodes of a run form it and where its workers find their store, by node
// count, backend, endpoint, run id and the standalone rules of torchrun. Pure but for the facts it
// asks the machine. No thread rule.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/core/launch_config.hpp"
#include "base/result.hpp"
#include "launcher/host_plan.hpp"
#include "launcher/machine.hpp"
#include "launcher/options/settings.hpp"
#include "launcher/rendezvous/conf.hpp"

namespace ddprun {

struct Scheduled;

struct RendezvousPlan {
  RunId run_id;
  StoreConfig store;
  std::optional<RendezvousConfig> rendezvous;  // unset: a single node
  std::optional<HostPlan> host;                // only with rendezvous
  std::vector<std::string> notes;              // what the user gave and the mode does not use
  std::vector<std::string> warnings;           // what the user gave and is unknown
};

/// What every way of plan looks at. Outlived by what it refers to.
struct RendezvousInput {
  const Settings& settings;
  const Machine& machine;
  const RendezvousConf& conf;
};

[[nodiscard]] Result<RendezvousPlan> plan_rendezvous(const Scheduled& scheduled,
                                                     const Machine& machine);

}  // namespace ddprun
