#include "base/address.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>

namespace ddprun {

std::string host_and_port(const std::string& host, std::uint16_t port) {
  const bool is_v6 = host.find(':') != std::string::npos;
  return (is_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

bool is_loopback_literal(const std::string& host) {
  in6_addr v6 = {};
  if (::inet_pton(AF_INET6, host.c_str(), &v6) == 1) {
    return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
  }
  in_addr v4 = {};
  return ::inet_pton(AF_INET, host.c_str(), &v4) == 1 && (ntohl(v4.s_addr) >> 24) == 127;
}

bool is_link_local_literal(const std::string& host) {
  in6_addr v6 = {};
  const std::string address = host.substr(0, host.find('%'));
  return ::inet_pton(AF_INET6, address.c_str(), &v6) == 1 && IN6_IS_ADDR_LINKLOCAL(&v6);
}

std::string plain_literal(const std::string& host) {
  char text[INET6_ADDRSTRLEN] = "";
  in6_addr v6 = {};
  in_addr v4 = {};
  if (::inet_pton(AF_INET6, host.substr(0, host.find('%')).c_str(), &v6) == 1) {
    const bool mapped = IN6_IS_ADDR_V4MAPPED(&v6);
    const void* address = mapped ? static_cast<const void*>(&v6.s6_addr[12]) : &v6;
    ::inet_ntop(mapped ? AF_INET : AF_INET6, address, text, sizeof(text));
  } else if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) {
    ::inet_ntop(AF_INET, &v4, text, sizeof(text));
  }
  return text;
}

std::string network_of(const std::string& host) {
  in6_addr v6 = {};
  const std::string plain = plain_literal(host);
  if (plain.empty()) return host;
  if (::inet_pton(AF_INET6, plain.c_str(), &v6) != 1 || IN6_IS_ADDR_LOOPBACK(&v6)) return plain;
  std::fill(v6.s6_addr + 8, v6.s6_addr + 16, std::uint8_t{0});
  char text[INET6_ADDRSTRLEN] = "";
  ::inet_ntop(AF_INET6, &v6, text, sizeof(text));
  return std::string(text) + "/64";
}

}  // namespace ddprun
