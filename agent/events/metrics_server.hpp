// MetricsServer: --http of one ddprun: GET /healthz or /, which is about the agent and not about
// training, and GET /metrics for Prometheus. Thread rule: the io_context's thread. Ownership:
// events, logger and agent outlive it.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <memory>
#include <optional>

#include "agent/config/launch_config.hpp"
#include "agent/events/events.hpp"
#include "agent/events/metrics.hpp"
#include "base/result.hpp"
#include "net/http.hpp"

namespace spdlog {
class logger;
}

namespace ddprun {

class MetricsServer {
 public:
  using Facts = std::function<MetricsFacts()>;
  explicit MetricsServer(EventLog& events) : events_(events) {}
  ~MetricsServer() { events_.stop_observing(this); }
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  /// Listens, if the configuration says so, and tells where. If the port is that of
  /// TORCHELASTIC_HEALTH_CHECK_PORT and in use, that costs a warning: other agents of this node
  /// inherit the same variable. Errors: kPortTaken or kSystem, of --http.
  [[nodiscard]] Result<void> open(const boost::asio::any_io_executor& executor,
                                  const std::optional<HttpConfig>& config, spdlog::logger& logger,
                                  Facts facts);

 private:
  [[nodiscard]] std::string respond(const net::HttpRequest& request) const;

  EventLog& events_;
  Facts facts_;
  RunMetrics metrics_;
  std::unique_ptr<net::HttpServer> server_;
};

}  // namespace ddprun
