// run_agent: one node's part of a run, from the first spawn to the exit code. Blocks until nothing
// of the run is left. Thread rule: call once, on the process's only thread: the agent forks, and
// takes over the signals of `config.stopping.signals`.
#pragma once

#include <spdlog/logger.h>

#include <boost/asio/any_io_executor.hpp>

#include "agent/config/launch_config.hpp"
#include "agent/coordinate/coordinator_port.hpp"
#include "base/environment.hpp"
#include "base/result.hpp"

namespace ddprun {

/// Starts the workers, serves their store, restarts them within the budget, reports. `environment`
/// is what the workers inherit (and where TORCHELASTIC_ERROR_FILE, TMPDIR and PATH are looked up).
/// Messages go to `logger` (agent/output/log.hpp). Returns the exit code of the whole command: 0,
/// the code of the worker that failed first (128 + n for a signal), 128 + n when ddprun was stopped
/// by signal n, 127/126/1/2 for an error of its own, which has been reported already. With
/// `config.rendezvous` the node takes part in the rounds of a coordinator, which
/// `make_coordinator` (may be empty) puts into this process, or `open_coordinator` when the
/// node is elected (`config.rendezvous->etcd`).
[[nodiscard]] int run_agent(const LaunchConfig& config, const Environment& environment,
                            spdlog::logger& logger, const MakeCoordinator& make_coordinator = {},
                            const OpenCoordinator& open_coordinator = {});

}  // namespace ddprun
