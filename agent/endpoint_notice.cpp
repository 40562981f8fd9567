#include "agent/endpoint_notice.hpp"

#include <utility>

#include "agent/link_secret.hpp"

namespace ddprun {

namespace asio = boost::asio;

EndpointNotice::EndpointNotice(asio::any_io_executor executor, const LaunchConfig& config,
                               CoordinatorAddress where, Decides decides)
    : executor_(executor),
      config_(config),
      where_(std::move(where)),
      decides_(std::move(decides)),
      timer_(executor) {}

void EndpointNotice::begin(std::uint16_t port) {
  port_ = port;
  link_ = std::make_unique<client::Connections>(
      executor_, where_.host, where_.port, [this](const client::Event& event) { on(event); },
      link_secret_of(config_));
  attempt();
}

void EndpointNotice::attempt() {
  is_up_ = false;
  link_->connect(++link_id_);
}

void EndpointNotice::on(const client::Event& event) {
  if (std::holds_alternative<client::Incoming>(event)) unanswered_ = 0;
  if (std::holds_alternative<client::LinkUp>(event)) {
    is_up_ = true;
    unanswered_ = 0;
    return tell();
  }
  if (!std::holds_alternative<client::LinkDown>(event)) return;
  is_up_ = false;
  again();
}

// The link stays open: its end says that the coordinator there is gone, and another may come.
void EndpointNotice::tell() {
  if (const auto round = decides_()) {
    link_->send(link_id_, protocol::Lead{config_.run_id, *round, port_});
    ++unanswered_;
  }
  again();
}

void EndpointNotice::again() {
  timer_.expires_after(is_up_ ? kReminderInterval : kNoticeInterval);
  timer_.async_wait([this](const boost::system::error_code& cancelled) {
    if (cancelled) return;
    if (is_up_ && unanswered_ < kUnansweredMax) return tell();
    attempt();
  });
}

}  // namespace ddprun
