#include "agent/endpoint_notice.hpp"

#include <utility>

#include "agent/link_secret.hpp"

namespace ddprun {

namespace asio = boost::asio;

EndpointNotice::EndpointNotice(asio::any_io_executor executor, const LaunchConfig& config)
    : executor_(executor), config_(config), timer_(executor) {}

void EndpointNotice::begin(std::uint16_t port) {
  port_ = port;
  const CoordinatorAddress& endpoint = config_.rendezvous->coordinator;
  link_ = std::make_unique<client::Connections>(
      executor_, endpoint.host, endpoint.port, [this](const client::Event& event) { on(event); },
      link_secret_of(config_));
  attempt();
}

void EndpointNotice::attempt() {
  link_->connect(++link_id_);
}

// The link stays open: its end says that the coordinator there is gone, and another may come.
void EndpointNotice::on(const client::Event& event) {
  if (std::holds_alternative<client::LinkUp>(event)) {
    // The one that follows it is decided here.
    const Round next(round_.value() + 1);
    return link_->send(link_id_, protocol::Lead{config_.run_id, next, port_});
  }
  if (!std::holds_alternative<client::LinkDown>(event)) return;
  timer_.expires_after(kNoticeInterval);
  timer_.async_wait([this](const boost::system::error_code& cancelled) {
    if (!cancelled) attempt();
  });
}

}  // namespace ddprun
