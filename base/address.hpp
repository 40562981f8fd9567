// Network addresses as text. Pure.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <optional>
#include <string>

namespace ddprun {

/// "node-1:29400", "10.0.0.7:29400", "[fd00::7]:29400".
[[nodiscard]] std::string host_and_port(const std::string& host, std::uint16_t port);

/// The address that a literal spells, without a zone. The whole text has to: a zero byte ends none.
[[nodiscard]] std::optional<in_addr> ipv4_of(const std::string& literal);
[[nodiscard]] std::optional<in6_addr> ipv6_of(const std::string& literal);

/// An address literal that only this machine reaches: 127.x.x.x, ::1 or ::ffff:127.x.x.x.
[[nodiscard]] bool is_loopback_literal(const std::string& host);

/// An IPv6 address that means another host on each interface: fe80::7, with or without a zone.
[[nodiscard]] bool is_link_local_literal(const std::string& host);

/// An address literal in the one form that addresses of sockets are written in: without a zone, an
/// IPv4-mapped IPv6 address as IPv4. Empty: it is no literal.
[[nodiscard]] std::string plain_literal(const std::string& host);

/// Whose share of something an address uses: who has an IPv6 address has its /64, "2001:db8::/64".
/// Others are themselves.
[[nodiscard]] std::string network_of(const std::string& host);

/// Whether text may be the address of another host, a literal or a name; names are not looked up.
[[nodiscard]] bool can_be_host(const std::string& address);

}  // namespace ddprun
