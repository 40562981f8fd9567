#include <algorithm>
#include <array>
#include <string_view>

#include "base/address.hpp"
#include "launcher/options/values.hpp"
#include "launcher/request/request.hpp"

namespace ddprun {
namespace {

bool is_host_letter(char c) {
  const bool word =
      (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  return word || c == '.' || c == ':' || c == '-';
}

/// Only IPv6 addresses have colons. The system takes digits and dots for an IPv4 address, "29400"
/// for 0.0.114.216.
bool is_host(const std::string& host) {
  if (is_address_literal(host)) return true;
  if (host.empty() || !std::all_of(host.begin(), host.end(), is_host_letter)) return false;
  const bool numeric = host.find_first_not_of("0123456789.") == std::string::npos;
  return !numeric && host.find(':') == std::string::npos;
}

bool lacks_zone(const std::string& host) {
  return is_link_local_literal(host) && host.find('%') == std::string::npos;
}

Error without_zone(const std::string& shown, const std::string& host) {
  return {ErrorKind::kUsage, shown + ": " + host +
                                 " is a link-local address, which needs its interface: " + host +
                                 "%eth0, for example"};
}

/// The host and, after a colon, the text of the port. A bare IPv6 address has colons, but no port.
std::pair<std::string, std::optional<std::string>> split_endpoint(const std::string& text) {
  if (text.starts_with('[')) {
    const auto close = text.find(']');
    if (close == std::string::npos) return {"", std::nullopt};
    const std::string rest = text.substr(close + 1);
    if (rest.empty()) return {text.substr(1, close - 1), std::nullopt};
    if (rest[0] != ':') return {"", std::nullopt};
    return {text.substr(1, close - 1), rest.substr(1)};
  }
  const auto colon = text.find(':');
  if (colon == std::string::npos || text.find(':', colon + 1) != std::string::npos) {
    return {text, std::nullopt};
  }
  return {text.substr(0, colon), text.substr(colon + 1)};
}

}  // namespace

std::string text_of(const Endpoint& endpoint) {
  if (endpoint.port) return host_and_port(endpoint.host, *endpoint.port);
  const bool is_v6 = endpoint.host.find(':') != std::string::npos;
  return is_v6 ? "[" + endpoint.host + "]" : endpoint.host;
}

bool is_address_literal(const std::string& host) {
  const auto zone = host.find('%');
  if (zone != std::string::npos) {  // only link-local addresses have one
    const bool is_spelled =
        zone + 1 < host.size() && std::all_of(host.begin() + static_cast<std::ptrdiff_t>(zone) + 1,
                                              host.end(), is_host_letter);
    return is_spelled && is_link_local_literal(host);
  }
  return ipv4_of(host) || ipv6_of(host);
}

bool is_wildcard_address(const std::string& host) {
  if (const auto v6 = ipv6_of(host)) return IN6_IS_ADDR_UNSPECIFIED(&*v6) != 0;
  return host == "0.0.0.0";
}

bool same_host_name(const std::string& left, const std::string& right) {
  const std::string one = lower(left);
  const std::string other = lower(right);
  if (one == other) return !one.empty();
  return one.starts_with(other + ".") || other.starts_with(one + ".");
}

std::optional<std::string> named_loopback(const std::string& host) {
  constexpr std::array<std::string_view, 4> kV4Names{"localhost", "localhost.localdomain",
                                                     "localhost4", "ip4-localhost"};
  constexpr std::array<std::string_view, 3> kV6Names{"localhost6", "ip6-localhost", "ip6-loopback"};
  if (is_loopback_literal(host)) return host;
  if (std::find(kV4Names.begin(), kV4Names.end(), host) != kV4Names.end()) return "127.0.0.1";
  if (std::find(kV6Names.begin(), kV6Names.end(), host) != kV6Names.end()) return "::1";
  return std::nullopt;
}

std::optional<std::uint16_t> parse_port(const std::string& text) {
  constexpr std::size_t kDigitsMax = 5;
  const auto port = parse_digits(text);
  if (!port || text.size() > kDigitsMax || *port > UINT16_MAX) return std::nullopt;
  return static_cast<std::uint16_t>(*port);
}

Result<Endpoint> parse_endpoint(const std::string& text, const std::string& name) {
  const auto [host, port_text] = split_endpoint(std::string(trimmed(text)));
  Endpoint endpoint{host, std::nullopt};
  if (port_text) endpoint.port = parse_port(*port_text);
  if (lacks_zone(host)) return without_zone(name + "='" + text + "'", host);
  if (is_host(host) && endpoint.port.has_value() == port_text.has_value()) return endpoint;
  return Error{
      ErrorKind::kUsage,
      name + "='" + text + "' is not HOST, HOST:PORT or [IPV6]:PORT with a port below 65536"};
}

Result<std::string> parse_host(const std::string& text, const std::string& shown,
                               const std::string& port_option) {
  const std::string host = split_endpoint(text).first;
  if (lacks_zone(host)) return without_zone(shown, host);
  const auto parsed = parse_endpoint(text, shown);
  if (parsed && !parsed->port) return parsed->host;
  const bool port = parsed && !port_option.empty();
  return Error{ErrorKind::kUsage, shown + " is not a host's name or address" +
                                      (port ? ": the port goes into " + port_option : "")};
}

}  // namespace ddprun
