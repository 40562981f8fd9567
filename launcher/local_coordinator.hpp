// The coordinator in a `ddprun` process, on the node that the endpoint names. Thread rule: the
// io_context's thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <memory>

#include "agent/coordinate/local_coordinator.hpp"
#include "base/result.hpp"
#include "launcher/configure.hpp"

namespace spdlog {
class logger;
}

namespace ddprun::coordinator {
class Server;
}

namespace ddprun {

/// A started server as the coordinator of its process's agent.
[[nodiscard]] std::unique_ptr<LocalCoordinator> local_coordinator(
    std::unique_ptr<coordinator::Server> server);

/// Binds the port and serves, if this node may or must. Null if another process has the port and
/// this node need not run the coordinator: then it joins like all other nodes. `logger` outlives
/// the local coordinator.
[[nodiscard]] Result<std::unique_ptr<LocalCoordinator>> start_local_coordinator(
    boost::asio::any_io_executor executor, const Launch& launch, spdlog::logger& logger);

/// Makes the coordinator of this run when this node is chosen for it. `launch` and `logger` outlive
/// what it makes.
[[nodiscard]] OpenCoordinator coordinator_opener(const Launch& launch, spdlog::logger& logger);

}  // namespace ddprun
