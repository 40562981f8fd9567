// Opens a listening TCP socket on exactly one address. No name is ever looked up.
// Thread rule: call on the thread of the io_context the acceptor belongs to.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <string>

#include "base/result.hpp"

namespace ddprun::net {

/// Listens on `address`:`port` (0: the kernel picks; ask local_endpoint()). The descriptor is
/// CLOEXEC and SO_REUSEADDR is on, so that a port of a finished round can be bound again. Fails
/// with kPortTaken when somebody listens there, else kSystem; the sentence names the address.
[[nodiscard]] Result<boost::asio::ip::tcp::acceptor> listen(boost::asio::any_io_executor executor,
                                                            const boost::asio::ip::address& address,
                                                            std::uint16_t port);

/// What every socket accepted from `listener` inherits on Linux: no delay of small segments, and
/// keep-alive, which notices a host that vanished without a word after about two minutes.
void set_inherited_options(int listener, const boost::asio::ip::tcp::endpoint& endpoint);

/// For protocols whose clients speak first: accept() yields a connection once something can be read
/// from it, or after about a second of silence. Until then it costs neither a descriptor nor a
/// wake-up, and its client does not notice if the listener is closed until it speaks.
void accept_when_readable(int listener);

/// "127.0.0.1:29400", "[::1]:29400".
[[nodiscard]] std::string to_text(const boost::asio::ip::tcp::endpoint& endpoint);

}  // namespace ddprun::net
