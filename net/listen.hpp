// Opens listening TCP sockets. Never resolves host names. Thread rule: call on the
// thread of the io_context the acceptor belongs to.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <string>

#include "base/result.hpp"

namespace ddprun::net {

/// Listens on `address`:`port` (0: the kernel picks a port; see local_endpoint()). The descriptor
/// is CLOEXEC, and SO_REUSEADDR is set so that the port of a finished round can be bound again.
/// Fails with kPortTaken if the port is in use, otherwise with kSystem; the sentence names the
/// address.
[[nodiscard]] Result<boost::asio::ip::tcp::acceptor> listen(boost::asio::any_io_executor executor,
                                                            const boost::asio::ip::address& address,
                                                            std::uint16_t port);

/// `address` is an IP address literal; empty means the wildcard address, of both families if the
/// host has IPv6. Errors: kUsage if `address` is not a literal, otherwise those of listen().
[[nodiscard]] Result<boost::asio::ip::tcp::acceptor> listen_on(
    boost::asio::any_io_executor executor, const std::string& address, std::uint16_t port);

/// Sets the options that accepted sockets inherit on Linux: TCP_NODELAY, and TCP keep-alive, which
/// detects a vanished host within about two minutes.
void set_inherited_options(int listener, const boost::asio::ip::tcp::endpoint& endpoint);

/// For protocols in which the client sends first: accept() returns a connection once data has
/// arrived, or after about one second of silence. Until then the connection uses no descriptor and
/// causes no wake-up, and its client does not notice that the listener was closed until it sends.
void accept_when_readable(int listener);

/// "127.0.0.1:29400", "[::1]:29400".
[[nodiscard]] std::string to_text(const boost::asio::ip::tcp::endpoint& endpoint);

}  // namespace ddprun::net
