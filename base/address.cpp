#include "base/address.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <cctype>
#include <string_view>

namespace ddprun {
namespace {

/// inet_pton() would read no further than a zero byte.
template <typename Address>
std::optional<Address> read_literal(int family, const std::string& literal) {
  Address address = {};
  const bool whole = literal.find('\0') == std::string::npos;
  if (!whole || ::inet_pton(family, literal.c_str(), &address) != 1) return std::nullopt;
  return address;
}

}  // namespace

std::optional<in_addr> ipv4_of(const std::string& literal) {
  return read_literal<in_addr>(AF_INET, literal);
}

std::optional<in6_addr> ipv6_of(const std::string& literal) {
  return read_literal<in6_addr>(AF_INET6, literal);
}

std::string host_and_port(const std::string& host, std::uint16_t port) {
  const bool is_v6 = host.find(':') != std::string::npos;
  return (is_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

bool is_loopback_literal(const std::string& host) {
  if (const auto v6 = ipv6_of(host)) {
    return IN6_IS_ADDR_LOOPBACK(&*v6) || (IN6_IS_ADDR_V4MAPPED(&*v6) && v6->s6_addr[12] == 127);
  }
  const auto v4 = ipv4_of(host);
  return v4 && (ntohl(v4->s_addr) >> 24) == 127;
}

bool is_link_local_literal(const std::string& host) {
  const auto v6 = ipv6_of(host.substr(0, host.find('%')));
  return v6 && IN6_IS_ADDR_LINKLOCAL(&*v6);
}

std::string plain_literal(const std::string& host) {
  char text[INET6_ADDRSTRLEN] = "";
  if (const auto v6 = ipv6_of(host.substr(0, host.find('%')))) {
    const bool mapped = IN6_IS_ADDR_V4MAPPED(&*v6);
    const void* address = mapped ? static_cast<const void*>(&v6->s6_addr[12]) : &*v6;
    ::inet_ntop(mapped ? AF_INET : AF_INET6, address, text, sizeof(text));
  } else if (const auto v4 = ipv4_of(host)) {
    ::inet_ntop(AF_INET, &*v4, text, sizeof(text));
  }
  return text;
}

std::string network_of(const std::string& host) {
  const std::string plain = plain_literal(host);
  if (plain.empty()) return host;
  auto v6 = ipv6_of(plain);
  if (!v6 || IN6_IS_ADDR_LOOPBACK(&*v6)) return plain;
  std::fill(v6->s6_addr + 8, v6->s6_addr + 16, std::uint8_t{0});
  char text[INET6_ADDRSTRLEN] = "";
  ::inet_ntop(AF_INET6, &*v6, text, sizeof(text));
  return std::string(text) + "/64";
}

// A link-local address has a zone behind '%'.
bool can_be_host(const std::string& address) {
  const bool is_spelled =
      !address.empty() && std::all_of(address.begin(), address.end(), [](char one) {
        return std::isalnum(static_cast<unsigned char>(one)) != 0 ||
               std::string_view(".:-_%").find(one) != std::string_view::npos;
      });
  if (!is_spelled) return false;
  if (const auto v4 = ipv4_of(address)) {
    const auto host = ntohl(v4->s_addr);
    return host != INADDR_ANY && !IN_MULTICAST(host) && host != INADDR_BROADCAST;
  }
  const auto v6 = ipv6_of(address);
  return !v6 || (!IN6_IS_ADDR_UNSPECIFIED(&*v6) && !IN6_IS_ADDR_MULTICAST(&*v6));
}

}  // namespace ddprun
