#include "launcher/options/values.hpp"
#include "launcher/rendezvous/endpoint.hpp"
#include "launcher/request_parts.hpp"
#include "launcher/usage.hpp"

namespace ddprun {
namespace {

Error unsupported_service(const std::string& variable, const std::string& value,
                          const std::string& what) {
  return unsupported(variable + "=" + value + ": " + what, "unset it to run without");
}

Result<void> check_event_handler(const Origin& origin) {
  if (origin.text == "null") return {};
  if (origin.text == "console" || origin.text == "dynamic_rendezvous") {
    return unsupported(origin.shown(), "null works");
  }
  return usage(origin.shown() + ": no such handler; null works");
}

}  // namespace

Result<std::optional<HttpConfig>> parse_http(const Settings& settings,
                                             const Environment& environment) {
  const Origin origin = settings.origin(OptionId::kHttp);
  if (origin.text.empty()) {
    const auto port = parse_port(value_or(environment, "TORCHELASTIC_HEALTH_CHECK_PORT", ""));
    if (!port || *port == 0) return std::optional<HttpConfig>();
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

Result<void> check_services(const Settings& settings, const Environment& environment) {
  constexpr const char* kFileTimer = "TORCHELASTIC_ENABLE_FILE_TIMER";
  auto handler = check_event_handler(settings.origin(OptionId::kEventLogHandler));
  if (!handler) return handler;
  const std::string timer = value_or(environment, kFileTimer, "");
  if (timer == "1") {
    return unsupported_service(kFileTimer, timer, "the watchdog for workers' timers");
  }
  return {};
}

}  // namespace ddprun
