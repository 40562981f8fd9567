// open_server: starts a coordinator on an address and port. Thread rule: the io_context's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "rendezvous/coordinator/server.hpp"

namespace ddprun::coordinator {

/// On return the coordinator is serving. `bind` is an address literal; empty means the wildcard
/// address, of both families if the host has IPv6. Errors: kPortTaken if the port is in use, kUsage
/// if `bind` is not a literal, otherwise kSystem.
[[nodiscard]] Result<std::unique_ptr<Server>> open_server(boost::asio::any_io_executor executor,
                                                          const std::string& bind,
                                                          std::uint16_t port,
                                                          ServerOptions options);

}  // namespace ddprun::coordinator
