#include "net/listen.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/socket_base.hpp>
#include <string_view>

#include "base/address.hpp"

namespace ddprun::net {

namespace asio = boost::asio;
using asio::ip::tcp;

std::string to_text(const tcp::endpoint& endpoint) {
  return host_and_port(endpoint.address().to_string(), endpoint.port());
}

namespace {

// Linux marks a socket as listening before it checks for port conflicts, so listen() can fail in
// each of several processes that have bound the same port. When listen() fails, rather than bind(),
// try again: the port may be free.
constexpr int kListenAttempts = 100;

// Together these detect a vanished host within about two minutes.
constexpr int kKeepAliveIdle_s = 60;
constexpr int kKeepAliveInterval_s = 10;
constexpr int kKeepAliveProbes = 6;
constexpr int kDeferAccept_s = 1;

void set_option(int socket, int level, int name, int value) {
  // Without one of these options the server is slower or notices a vanished host later; neither is
  // an error.
  (void)::setsockopt(socket, level, name, &value, sizeof(value));
}

Error listen_error(const tcp::endpoint& where, const boost::system::error_code& why) {
  const std::string what = "cannot listen on " + to_text(where) + ": ";
  if (why == asio::error::address_in_use) {
    return {ErrorKind::kPortTaken, what + "the port is in use; choose another"};
  }
  const bool starved = why == asio::error::no_descriptors;
  const std::string hint = starved ? "; raise the limit on open files (ulimit -n)" : "";
  return {ErrorKind::kSystem, what + why.message() + hint};
}

tcp::acceptor bind_to(const asio::any_io_executor& executor, const tcp::endpoint& where,
                      boost::system::error_code& why) {
  tcp::acceptor acceptor(executor);
  acceptor.open(where.protocol(), why);
  if (why) return acceptor;
  ::fcntl(acceptor.native_handle(), F_SETFD, FD_CLOEXEC);
  acceptor.set_option(asio::socket_base::reuse_address(true), why);
  // "::" is the wildcard address of both families, whatever net.ipv6.bindv6only says.
  if (!why && where.address().is_v6()) {
    acceptor.set_option(asio::ip::v6_only(!where.address().is_unspecified()), why);
  }
  if (!why) acceptor.bind(where, why);
  return acceptor;
}

}  // namespace

Result<tcp::acceptor> listen(asio::any_io_executor executor, const asio::ip::address& address,
                             std::uint16_t port) {
  const tcp::endpoint where(address, port);
  for (int attempt = 1;; ++attempt) {
    boost::system::error_code why;
    tcp::acceptor acceptor = bind_to(executor, where, why);
    if (why) return listen_error(where, why);
    acceptor.listen(asio::socket_base::max_listen_connections, why);
    if (!why) return acceptor;
    if (why != asio::error::address_in_use || attempt == kListenAttempts)
      return listen_error(where, why);
  }
}

Result<tcp::acceptor> listen_on(asio::any_io_executor executor, const std::string& address,
                                std::uint16_t port) {
  if (address.empty()) {
    // A socket bound to :: accepts both families, unless the host has no IPv6.
    auto both = listen(executor, asio::ip::address_v6::any(), port);
    if (both || both.error().kind == ErrorKind::kPortTaken) return both;
    return listen(executor, asio::ip::address_v4::any(), port);
  }
  boost::system::error_code why;
  const auto literal = asio::ip::make_address(address, why);
  if (why) return Error(ErrorKind::kUsage, address + " is not an IP address to listen on");
  return listen(executor, literal, port);
}

// Set once on the listener instead of with one system call per client.
void set_inherited_options(int listener, const tcp::endpoint& endpoint) {
  set_option(listener, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(listener, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(listener, IPPROTO_TCP, TCP_KEEPIDLE, kKeepAliveIdle_s);
  set_option(listener, IPPROTO_TCP, TCP_KEEPINTVL, kKeepAliveInterval_s);
  set_option(listener, IPPROTO_TCP, TCP_KEEPCNT, kKeepAliveProbes);
  // Loopback loses no packets, so a pacing congestion control (bbr) only delays large replies.
  // Every kernel includes Reno, and it needs no privilege.
  constexpr std::string_view kUnpaced = "reno";
  if (endpoint.address().is_loopback()) {
    (void)::setsockopt(listener, IPPROTO_TCP, TCP_CONGESTION, kUnpaced.data(), kUnpaced.size());
  }
}

void accept_when_readable(int listener) {
  set_option(listener, IPPROTO_TCP, TCP_DEFER_ACCEPT, kDeferAccept_s);
}

}  // namespace ddprun::net
