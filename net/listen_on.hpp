// Opens a listening TCP socket on the configured address, or on the wildcard address. Thread rule:
// as net::listen.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <string>

#include "base/result.hpp"

namespace ddprun::net {

/// `address` is an IP address literal; empty means the wildcard address, of both families if the
/// host has IPv6. Errors: kUsage if `address` is not a literal, otherwise those of net::listen.
[[nodiscard]] Result<boost::asio::ip::tcp::acceptor> listen_on(
    boost::asio::any_io_executor executor, const std::string& address, std::uint16_t port);

}  // namespace ddprun::net
