#include "agent/coordinate/endpoint_check.hpp"

#include <utility>

namespace ddprun {

EndpointCheck::EndpointCheck(const boost::asio::any_io_executor& executor,
                             client::LinkSecret secret, const CoordinatorAddress& where,
                             std::string own, Duration silence, Tells tells)
    : nonce_(std::move(own)),
      run_(secret.run),
      silence_(silence),
      tells_(std::move(tells)),
      timer_(executor),
      link_(
          executor, where.host, where.port, [this](const client::Event& event) { on(event); },
          std::move(secret)) {
  attempt();
}

void EndpointCheck::attempt() {
  link_.connect(++link_id_);
}

void EndpointCheck::on(const client::Event& event) {
  if (std::holds_alternative<client::LinkUp>(event)) {
    link_.send(link_id_, protocol::Probe{nonce_, run_});
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
    link_.close(link_id_);
    ask_later();
    return tell(answer);
  }
  link_.close(link_id_);
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

}  // namespace ddprun
