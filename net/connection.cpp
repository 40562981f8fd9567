#include "net/connection.hpp"

#include <arpa/inet.h>
#include <unistd.h>

#include <cstring>

#include "base/address.hpp"

namespace ddprun::net {

namespace {

constexpr std::size_t kLoggedMax = 1024;

}  // namespace

Connection::Connection(std::uint64_t number, int socket, const sockaddr_storage& peer)
    : id(number), fd(socket) {
  std::memcpy(&from, &peer, sizeof(from));
}

Connection::~Connection() {
  if (fd != -1) ::close(fd);
}

std::string address_text(const sockaddr_in6& address) {
  char text[INET6_ADDRSTRLEN] = "?";
  if (address.sin6_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
  } else if (IN6_IS_ADDR_V4MAPPED(&address.sin6_addr)) {
    ::inet_ntop(AF_INET, &address.sin6_addr.s6_addr[12], text, sizeof(text));
  } else {
    ::inet_ntop(AF_INET6, &address.sin6_addr, text, sizeof(text));
  }
  return text;
}

std::string peer_text(const Connection& connection) {
  return host_and_port(address_text(connection.from), ntohs(connection.from.sin6_port));
}

bool LoggedCauses::is_new(const Connection& connection, const std::string& cause) {
  if (logged_.size() >= kLoggedMax) logged_.clear();
  return logged_.insert(network_of(address_text(connection.from)) + ' ' + cause).second;
}

}  // namespace ddprun::net
