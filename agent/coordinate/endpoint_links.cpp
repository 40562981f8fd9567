#include "agent/coordinate/endpoint_links.hpp"

#include <utility>

namespace ddprun {

namespace asio = boost::asio;

namespace {

/// At another place than the endpoint a certificate names that place.
client::LinkSecret secret_at(const std::string& host, const LaunchConfig& config) {
  client::LinkSecret secret = link_secret_of(config);
  if (host != config.rendezvous->coordinator.host) secret.host.clear();
  return secret;
}

}  // namespace

EndpointCheck::EndpointCheck(const boost::asio::any_io_executor& executor,
                             client::LinkSecret secret, const CoordinatorAddress& where,
                             std::string own, Duration silence, Tells tells)
    : nonce_(std::move(own)),
      run_(secret.run),
      silence_(silence),
      tells_(std::move(tells)),
      timer_(executor),
      link_(client::make_tcp_link(
          executor, where.host, where.port, [this](const client::Event& event) { on(event); },
          std::move(secret))) {
  attempt();
}

void EndpointCheck::attempt() {
  link_->connect(++link_id_);
}

void EndpointCheck::on(const client::Event& event) {
  if (std::holds_alternative<client::LinkUp>(event)) {
    link_->send(link_id_, protocol::Probe{nonce_, run_});
  } else if (const auto* incoming = std::get_if<client::Incoming>(&event)) {
    answered(incoming->message);
  } else if (const auto* down = std::get_if<client::LinkDown>(&event)) {
    again(down->evidence);
  }
}

void EndpointCheck::answered(const protocol::Message& message) {
  const auto* probe = std::get_if<protocol::Probe>(&message);
  if (probe != nullptr && probe->nonce != nonce_) {
    const protocol::Probe answer = *probe;
    const auto tell = tells_.other;  // it may destroy this object
    link_->close(link_id_);
    ask_later();
    return tell(answer);
  }
  link_->close(link_id_);
  if (probe != nullptr) return;
  const auto* refused = std::get_if<protocol::Refused>(&message);
  again(refused == nullptr ? "another server answers there" : refused->sentence);
}

void EndpointCheck::again(const std::string& evidence) {
  if (Clock::now() - began_ >= silence_) {
    const auto tell = tells_.unanswered;
    return tell(evidence);
  }
  ask_later();
}

void EndpointCheck::ask_later() {
  timer_.expires_after(kCheckInterval);
  // A timer that has expired already is not cancelled any more.
  timer_.async_wait(
      [this, weak = std::weak_ptr<int>(alive_)](const boost::system::error_code& cancelled) {
        if (!cancelled && weak.lock() != nullptr) attempt();
      });
}

EndpointNotice::EndpointNotice(asio::any_io_executor executor, const LaunchConfig& config,
                               CoordinatorAddress where, Says says, Hears hears, Ends ends)
    : says_(std::move(says)), hears_(std::move(hears)), ends_(std::move(ends)), timer_(executor) {
  link_ = client::make_tcp_link(
      executor, where.host, where.port, [this](const client::Event& event) { on(event); },
      secret_at(where.host, config));
  attempt();
}

void EndpointNotice::attempt() {
  is_up_ = false;
  link_->connect(++link_id_);
}

void EndpointNotice::on(const client::Event& event) {
  if (const auto* incoming = std::get_if<client::Incoming>(&event)) {
    unanswered_ = 0;
    const auto* moved = std::get_if<protocol::Moved>(&incoming->message);
    if (moved != nullptr && hears_) hears_(*moved);
  }
  if (std::holds_alternative<client::LinkUp>(event)) {
    is_up_ = true;
    unanswered_ = 0;
    return tell();
  }
  if (!std::holds_alternative<client::LinkDown>(event)) return;
  is_up_ = false;
  ends_ ? end() : again();
}

void EndpointNotice::end() {
  if (std::exchange(has_ended_, true)) return;
  timer_.cancel();
  ends_();
}

// The link stays open: its end says that the coordinator there is gone, and another may come.
void EndpointNotice::tell() {
  if (const auto lead = says_()) {
    link_->send(link_id_, *lead);
    ++unanswered_;
  }
  again();
}

void EndpointNotice::again() {
  timer_.expires_after(is_up_ ? kReminderInterval : kNoticeInterval);
  // A timer that has expired already is not cancelled any more.
  timer_.async_wait(
      [this, weak = std::weak_ptr<int>(alive_)](const boost::system::error_code& cancelled) {
        if (cancelled || weak.lock() == nullptr) return;
        if (is_up_ && unanswered_ < kUnansweredMax) return tell();
        if (ends_) return end();
        attempt();
      });
}

}  // namespace ddprun
