#include "agent/events/metrics_server.hpp"

#include <spdlog/logger.h>

#include <utility>

#include "base/message_line.hpp"
#include "net/listen.hpp"

namespace ddprun {

namespace {

constexpr const char* kPages = "/healthz and /metrics";

}  // namespace

Result<void> MetricsServer::open(const boost::asio::any_io_executor& executor,
                                 const std::optional<HttpConfig>& config, spdlog::logger& logger,
                                 Facts facts) {
  if (!config) return {};
  auto listener = net::listen_on(executor, config->address, config->port);
  if (!listener && config->origin == HttpConfig::Origin::kOption) return listener.error();
  if (!listener) {
    logger.warn(warning_line("HTTP", "TORCHELASTIC_HEALTH_CHECK_PORT: " +
                                         listener.error().sentence + "; no health check here"));
    return {};
  }
  facts_ = std::move(facts);
  events_.observe(this,
                  [this](const RunEvent& event, Duration since) { metrics_.take(event, since); });
  logger.info(note_line("HTTP", "health check and metrics at http://" +
                                    net::to_text(listener->local_endpoint()) + "/metrics"));
  server_ = std::make_unique<net::HttpServer>(
      std::move(*listener), kPages,
      [this](const net::HttpRequest& request) { return respond(request); });
  return {};
}

std::string MetricsServer::respond(const net::HttpRequest& request) const {
  const bool is_probe = request.path == "/healthz" || request.path == "/";
  if (is_probe) {
    return net::http_response("200 OK", "text/plain; charset=utf-8", "ok\n");
  }
  if (request.path != "/metrics") return net::http_refusal(404, kPages);
  MetricsFacts facts = facts_();
  facts.age = events_.since_start();
  return net::http_response("200 OK", "text/plain; version=0.0.4; charset=utf-8",
                            metrics_.text(facts));
}

}  // namespace ddprun
