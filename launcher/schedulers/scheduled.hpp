// A scheduler supplies what the command line leaves out: under `srun ddprun prog` the number of
// nodes, this node's position, the rendezvous, the run id, and a worker for each GPU. What is given
// as an option or PET_* variable stays as it is. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "launcher/machine/machine.hpp"
#include "launcher/request/request.hpp"

namespace ddprun {

/// A file of options may be there for other machines, too: leaves its nodes and rendezvous out
/// where a scheduler decides them. Returns a note for each option.
[[nodiscard]] Result<std::vector<std::string>> leave_out_nodes(Settings& settings,
                                                               const RendezvousRequest& asked,
                                                               const Machine& machine);

/// Returns notes for the user. Leaves everything as it is if no scheduler started this process, if
/// the options describe the run completely (--standalone, --hosts, one node, or nodes and an
/// address), and in a worker of another run, whose variables are about that run. Otherwise an error
/// for what would unintentionally be a world of one.
[[nodiscard]] Result<std::vector<std::string>> fill_from_scheduler(Request& request,
                                                                   const Machine& machine);

}  // namespace ddprun
