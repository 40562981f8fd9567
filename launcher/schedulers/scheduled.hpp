// A scheduler supplies what the command line leaves out: under `srun ddprun prog` the number of
// nodes, this node's place, where they meet, the run id, and a worker for each GPU. What is given
// as an option or PET_* variable stays as it is. Pure, no thread rule.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "launcher/machine.hpp"
#include "launcher/options/settings.hpp"
#include "launcher/rendezvous/host_list.hpp"

namespace ddprun {

struct Scheduled {
  Settings settings;              // as given, with the scheduler's values where nothing was given
  std::optional<HostList> hosts;  // the nodes meet by it, unless the settings say where
  std::vector<std::string> notes;
};

/// Leaves everything as it is where no scheduler started this process, where the options say all
/// (--standalone, --hosts, one node, or nodes and an address), and in a worker of another run,
/// whose variables are about that run. Else an error for what would be a world of one by mistake.
[[nodiscard]] Result<Scheduled> ask_scheduler(const Settings& settings, const Machine& machine);

}  // namespace ddprun
