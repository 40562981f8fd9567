#include <utility>

#include "rendezvous/coordinator/server_impl.hpp"

namespace ddprun::coordinator {

// link.held has the first bytes of the handshake, and set_due() bounds its time.
void Server::Impl::begin_tls(Link& link) {
  set_due(link);
  const std::string first = std::exchange(link.held, {});
  if (tls_ == nullptr) {
    enqueue(link, std::make_shared<Frame>(std::string(net::kTlsRefusal), unsent_));
    return reject(link,
                  "TLS: an agent with a secret or a certificate came, but this coordinator has "
                  "neither");
  }
  link.tls = net::TlsSession::accepting(tls_);
  link.handshake = handshakes_.insert(handshakes_.end(), link.id);
  if (handshakes_.size() > options_.limits.handshakes) {
    // An honest agent needs one round trip, so it is not the oldest for long.
    Link& oldest = *links_.find(handshakes_.front());
    const std::string cause = "more incomplete handshakes than handshakes = " +
                              std::to_string(options_.limits.handshakes);
    log_once(oldest, cause);
    lose(oldest, cause);
    if (&oldest == &link) return;
  }
  open_sealed(link, first);
}

void Server::Impl::open_sealed(Link& link, std::string_view input) {
  std::string plain;
  const auto opened = link.tls->receive(input, plain);
  std::string answer = link.tls->take_output();
  if (!answer.empty() && !link.mute)
    enqueue(link, std::make_shared<Frame>(std::move(answer), unsent_));
  if (link.state == LinkState::kClosed) return;
  if (!opened && !link.tls->is_established()) return reject(link, opened.error().sentence);
  if (!opened) {  // what preceded it could not be answered any more
    log_once(link, opened.error().sentence);
    return lose(link, opened.error().sentence);
  }
  if (link.tls->is_established()) forget_handshake(link);
  if (!plain.empty()) understand(link, plain);
}

/// The peer has not proved who it is. It gets no sentence, only what TLS says.
void Server::Impl::reject(Link& link, const std::string& cause) {
  ++rejected_;
  log_once(link, cause);
  close_link(link);
  link.tls.reset();
}

void Server::Impl::forget_handshake(Link& link) {
  if (link.handshake) handshakes_.erase(*link.handshake);
  link.handshake.reset();
}

SharedFrame Server::Impl::sealed(Link& link, const Frame& frame) {
  return std::make_shared<Frame>(link.tls->seal(frame.bytes), unsent_);
}

}  // namespace ddprun::coordinator
