// Who may use the stores that this process serves. Thread rule: the io_context's thread.
#pragma once

#include <memory>

#include "agent/config/launch_config.hpp"
#include "rendezvous/store/server_peers.hpp"

namespace ddprun {

/// Processes of this machine that run as this process does, as root, or as one of the processes
/// below this one; and no other machine until one is added. Null with --store-open: all clients
/// may.
[[nodiscard]] std::shared_ptr<store::Peers> make_store_peers(const LaunchConfig& config,
                                                             std::shared_ptr<spdlog::logger> log);

}  // namespace ddprun
