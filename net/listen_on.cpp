#include "net/listen_on.hpp"

#include <boost/asio/ip/address.hpp>

#include "net/listen.hpp"

namespace ddprun::net {

namespace asio = boost::asio;

Result<asio::ip::tcp::acceptor> listen_on(asio::any_io_executor executor,
                                          const std::string& address, std::uint16_t port) {
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

}  // namespace ddprun::net
