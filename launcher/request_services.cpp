#include <algorithm>
#include <array>
#include <cstdint>

#include "launcher/options/values.hpp"
#include "launcher/rendezvous/endpoint.hpp"
#include "launcher/request_parts.hpp"
#include "launcher/usage.hpp"

namespace ddprun {

namespace {

constexpr const char* kHealthPort = "TORCHELASTIC_HEALTH_CHECK_PORT";

std::optional<std::uint16_t> health_port(const Environment& environment) {
  const auto port = parse_port(value_or(environment, kHealthPort, ""));
  if (!port || *port == 0) return std::nullopt;
  return *port;
}

// Python's names for the levels at which torchrun's events are not shown.
bool is_above_info(const std::string& level) {
  constexpr std::array kLevels{"WARN", "WARNING", "ERROR", "FATAL", "CRITICAL"};
  return std::find(kLevels.begin(), kLevels.end(), level) != kLevels.end();
}

}  // namespace

std::vector<std::string> health_port_note(const Settings& settings,
                                          const Environment& environment) {
  const std::string value = value_or(environment, kHealthPort, "");
  const bool counts = settings.origin(OptionId::kHttp).text.empty();
  if (!counts || value.empty() || health_port(environment)) return {};
  return {std::string(kHealthPort) + "='" + value +
          "' is not a port from 1 to 65535: ignored, there is no health check here"};
}

Result<std::optional<HttpConfig>> parse_http(const Settings& settings,
                                             const Environment& environment) {
  const Origin origin = settings.origin(OptionId::kHttp);
  if (origin.text.empty()) {
    const auto port = health_port(environment);
    if (!port) return std::optional<HttpConfig>();
    return std::optional(HttpConfig{"", *port, HttpConfig::Origin::kVariable});
  }
  const auto endpoint = parse_endpoint(origin.text, origin.name);
  if (!endpoint) return endpoint.error();
  const bool is_address = is_address_literal(endpoint->host) || endpoint->host == "localhost";
  if (!is_address || !endpoint->port) {
    return usage(origin.quoted() +
                 " is not an address of this machine with a port, such as 127.0.0.1:9400");
  }
  const std::string host = endpoint->host == "localhost" ? kLoopbackV4 : endpoint->host;
  return std::optional(HttpConfig{host, *endpoint->port, HttpConfig::Origin::kOption});
}

Result<bool> parse_event_handler(const Settings& settings, const Environment& environment) {
  const Origin origin = settings.origin(OptionId::kEventLogHandler);
  if (origin.text == "console") return !is_above_info(value_or(environment, "LOGLEVEL", "INFO"));
  if (origin.text == "null" || origin.text == "dynamic_rendezvous") return false;
  return usage(origin.shown() + ": no such handler; null, console and dynamic_rendezvous work");
}

std::optional<std::string> parse_timer_pipe(const Environment& environment) {
  if (value_or(environment, "TORCHELASTIC_ENABLE_FILE_TIMER", "") != "1") return std::nullopt;
  return value_or(environment, "TORCHELASTIC_TIMER_FILE", "");
}

}  // namespace ddprun
