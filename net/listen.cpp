#include "net/listen.hpp"

#include <fcntl.h>

#include <boost/asio/socket_base.hpp>

namespace ddprun::net {

namespace asio = boost::asio;
using asio::ip::tcp;

std::string to_text(const tcp::endpoint& endpoint) {
  const std::string host = endpoint.address().to_string();
  const std::string port = std::to_string(endpoint.port());
  return endpoint.address().is_v6() ? "[" + host + "]:" + port : host + ":" + port;
}

namespace {

Error listen_error(const tcp::endpoint& where, const boost::system::error_code& why) {
  const std::string what = "cannot listen on " + to_text(where) + ": ";
  if (why == asio::error::address_in_use) {
    return {ErrorKind::kPortTaken,
            what + "the port is in use; choose another, or 0 for a free one"};
  }
  return {ErrorKind::kSystem, what + why.message()};
}

}  // namespace

Result<tcp::acceptor> listen(asio::any_io_executor executor, const asio::ip::address& address,
                             std::uint16_t port) {
  const tcp::endpoint where(address, port);
  boost::system::error_code why;
  tcp::acceptor acceptor(executor);
  acceptor.open(where.protocol(), why);
  if (why) return listen_error(where, why);
  ::fcntl(acceptor.native_handle(), F_SETFD, FD_CLOEXEC);
  acceptor.set_option(asio::socket_base::reuse_address(true), why);
  if (!why) acceptor.bind(where, why);
  if (!why) acceptor.listen(asio::socket_base::max_listen_connections, why);
  if (why) return listen_error(where, why);
  return acceptor;
}

}  // namespace ddprun::net
