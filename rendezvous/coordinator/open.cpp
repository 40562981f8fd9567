#include "rendezvous/coordinator/open.hpp"

#include <utility>

#include "net/listen.hpp"

namespace ddprun::coordinator {

namespace asio = boost::asio;

Result<std::unique_ptr<Server>> open_server(asio::any_io_executor executor, const std::string& bind,
                                            std::uint16_t port, ServerOptions options) {
  auto listener = net::listen_on(executor, bind, port);
  if (!listener) return listener.error();
  auto server = std::make_unique<Server>(executor, std::move(*listener), std::move(options));
  const auto started = server->start();
  if (!started) return started.error();
  return server;
}

}  // namespace ddprun::coordinator
