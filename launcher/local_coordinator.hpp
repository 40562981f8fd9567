// The coordinator inside `ddprun`, on the node whose machine the endpoint names. Thread rule: the
// io_context's thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <memory>

#include "agent/local_coordinator.hpp"
#include "base/result.hpp"
#include "launcher/configure.hpp"

namespace spdlog {
class logger;
}

namespace ddprun {

/// Binds the port and serves, if this node may or must. Null when another process has the port
/// already and this node need not be the host: then it joins like every other node. `logger`
/// outlives the local coordinator.
[[nodiscard]] Result<std::unique_ptr<LocalCoordinator>> host_coordinator(
    boost::asio::any_io_executor executor, const Launch& launch, spdlog::logger& logger);

}  // namespace ddprun
