#include "rendezvous/coordinator/open.hpp"

#include <boost/asio/ip/address.hpp>
#include <utility>

#include "net/listen.hpp"

namespace ddprun::coordinator {

namespace asio = boost::asio;
using Acceptor = asio::ip::tcp::acceptor;

namespace {

/// A socket on :: takes both families, unless the machine has no IPv6 at all.
Result<Acceptor> listen_everywhere(asio::any_io_executor executor, std::uint16_t port) {
  auto both = net::listen(executor, asio::ip::address_v6::any(), port);
  if (both || both.error().kind == ErrorKind::kPortTaken) return both;
  return net::listen(executor, asio::ip::address_v4::any(), port);
}

Result<Acceptor> listen_on(asio::any_io_executor executor, const std::string& bind,
                           std::uint16_t port) {
  if (bind.empty()) return listen_everywhere(executor, port);
  boost::system::error_code why;
  const auto address = asio::ip::make_address(bind, why);
  if (!why) return net::listen(executor, address, port);
  return Error{ErrorKind::kUsage, bind +
                                      " is not an address; give one like 127.0.0.1, 0.0.0.0 "
                                      "or ::1"};
}

}  // namespace

Result<std::unique_ptr<Server>> open_server(asio::any_io_executor executor, const std::string& bind,
                                            std::uint16_t port, ServerOptions options) {
  auto listener = listen_on(executor, bind, port);
  if (!listener) return listener.error();
  auto server = std::make_unique<Server>(executor, std::move(*listener), std::move(options));
  const auto started = server->start();
  if (!started) return started.error();
  return server;
}

}  // namespace ddprun::coordinator
