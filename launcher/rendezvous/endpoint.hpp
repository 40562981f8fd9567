// HOST[:PORT], [V6], [V6]:PORT and bare V6, and what the text of a host means without a lookup.
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"

namespace ddprun {

inline constexpr std::uint16_t kC10dPort = 29400;  // the defaults, as in torchrun
inline constexpr std::uint16_t kStaticPort = 29500;
inline constexpr const char* kLoopbackV4 = "127.0.0.1";
inline constexpr const char* kLoopbackV6 = "::1";

struct Endpoint {
  std::string host;
  std::optional<std::uint16_t> port;
};

/// `name` is the name of the option in the sentence of an error.
[[nodiscard]] Result<Endpoint> parse_endpoint(const std::string& text, const std::string& name);

/// A name or an address without a port; an IPv6 address may have brackets. `shown`: the option with
/// its value. `port_option`: the one that takes a port.
[[nodiscard]] Result<std::string> parse_host(const std::string& text, const std::string& shown,
                                             const std::string& port_option = "");

/// As typed: HOST:PORT, [V6]:PORT, or without the port where there is none.
[[nodiscard]] std::string text_of(const Endpoint& endpoint);

/// An IPv4 or IPv6 address, with or without a zone, not a name.
[[nodiscard]] bool is_address_literal(const std::string& host);

/// 0.0.0.0 or ::, the wildcard addresses: a socket can be bound to them, but no host has them.
[[nodiscard]] bool is_wildcard_address(const std::string& host);

/// "gpu-01" and "gpu-01.cluster" may be one machine, "gpu-01.a" and "gpu-01.b" may not.
[[nodiscard]] bool same_host_name(const std::string& left, const std::string& right);

/// The loopback address that a host's text certainly means: a loopback literal, or localhost and
/// its aliases. nullopt for any other name, whatever it resolves to.
[[nodiscard]] std::optional<std::string> named_loopback(const std::string& host);

/// A port number 0..65535.
[[nodiscard]] std::optional<std::uint16_t> parse_port(const std::string& text);

}  // namespace ddprun
