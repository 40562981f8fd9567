// Opens a listening TCP socket where a configuration says: on one address, or on all of them.
// Thread rule: as net::listen.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <string>

#include "base/result.hpp"

namespace ddprun::net {

/// `address`: a literal; empty: every address of this machine, of both families where there are
/// two. Errors: kUsage for what is no literal, else those of net::listen.
[[nodiscard]] Result<boost::asio::ip::tcp::acceptor> listen_on(
    boost::asio::any_io_executor executor, const std::string& address, std::uint16_t port);

}  // namespace ddprun::net
