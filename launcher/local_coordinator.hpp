// The coordinator in a `ddprun` process, on the node that the endpoint names. Thread rule: the
// io_context's thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>

#include "agent/coordinate/coordinator_port.hpp"
#include "base/result.hpp"
#include "launcher/configure.hpp"

namespace spdlog {
class logger;
}

namespace ddprun {

/// Binds the port and serves, if this node may or must. Null if another process has the port and
/// this node need not run the coordinator: then it joins like all other nodes. `logger` outlives
/// the local coordinator.
[[nodiscard]] Result<Coordinator> start_local_coordinator(boost::asio::any_io_executor executor,
                                                          const Launch& launch,
                                                          spdlog::logger& logger);

/// Makes the coordinator of this run when this node is chosen for it. `launch` and `logger` outlive
/// what it makes.
[[nodiscard]] OpenCoordinator coordinator_opener(const Launch& launch, spdlog::logger& logger);

}  // namespace ddprun
