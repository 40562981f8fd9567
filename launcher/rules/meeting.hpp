// Where the workers of a run meet: node count, backend, endpoint, run id, and the standalone rules
// of torchrun. Pure but for the facts it asks the machine. No thread rule.
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
#include "launcher/rules/rendezvous_conf.hpp"

namespace ddprun {

struct Scheduled;

struct Meeting {
  RunId run_id;
  std::string master_addr;  // what workers are told; empty: the round says it
  std::string listen_addr;  // the literal behind it; empty: every address
  std::uint16_t master_port = 0;
  StoreHost store_host = StoreHost::kAgent;
  std::optional<RendezvousConfig> rendezvous;  // unset: this node alone
  std::optional<HostPlan> host;                // only with rendezvous
  std::vector<std::string> notes;              // what the user gave and the mode does not use
  std::vector<std::string> warnings;           // what the user gave and nobody knows
};

/// What every way of meeting looks at. Outlived by what it refers to.
struct MeetingInput {
  const Settings& settings;
  const Machine& machine;
  const RendezvousConf& conf;
};

[[nodiscard]] Result<Meeting> arrange_meeting(const Scheduled& scheduled, const Machine& machine);

}  // namespace ddprun
