#include "launcher/rules/endpoint.hpp"

#include <algorithm>

#include "launcher/options/numbers.hpp"

namespace ddprun {
namespace {

bool is_host_letter(char c) {
  const bool word =
      (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  return word || c == '.' || c == ':' || c == '-';
}

bool is_host(const std::string& host) {
  return !host.empty() && std::all_of(host.begin(), host.end(), is_host_letter);
}

/// The host and, behind a colon, the port's text. A bare IPv6 address has colons, but no port.
std::pair<std::string, std::optional<std::string>> split(const std::string& text) {
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

std::optional<std::uint16_t> parse_port(const std::string& text) {
  const bool digits =
      !text.empty() && text.size() <= 5 &&
      std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!digits) return std::nullopt;
  const auto port = parse_integer(text);
  if (!port || *port > UINT16_MAX) return std::nullopt;
  return static_cast<std::uint16_t>(*port);
}

Result<Endpoint> parse_endpoint(const std::string& text, const std::string& name) {
  const auto [host, port_text] = split(text);
  Endpoint endpoint{host, std::nullopt};
  if (port_text) endpoint.port = parse_port(*port_text);
  if (is_host(host) && endpoint.port.has_value() == port_text.has_value()) return endpoint;
  return Error{
      ErrorKind::kUsage,
      name + "='" + text + "' is not HOST, HOST:PORT or [IPV6]:PORT with a port below 65536"};
}

}  // namespace ddprun
