// open_server: from "which address and port" to a coordinator that serves. Thread rule: the
// io_context's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "rendezvous/coordinator/server.hpp"

namespace ddprun::coordinator {

/// Listens and serves before it returns. `bind` is an address literal; empty: every address of this
/// machine, of both families where there are two. Errors: kPortTaken when somebody listens there,
/// kUsage for a `bind` that is no literal, else kSystem.
[[nodiscard]] Result<std::unique_ptr<Server>> open_server(boost::asio::any_io_executor executor,
                                                          const std::string& bind,
                                                          std::uint16_t port,
                                                          ServerOptions options);

}  // namespace ddprun::coordinator
