#include <spdlog/logger.h>

#include <utility>

#include "base/address.hpp"
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
  unproven_.add(link.id, network_of(net::address_text(link.from)));
  if (unproven_.size() > options_.limits.handshakes) {
    // An honest agent needs one round trip, so it is not the oldest of its network for long.
    Link& loser = *links_.find(unproven_.loser());
    const std::string cause = "more incomplete handshakes than handshakes = " +
                              std::to_string(options_.limits.handshakes);
    ++rejected_;
    log_once(loser, cause);
    lose(loser, cause);
    if (&loser == &link) return;
  }
  await_turn(link, first);
}

// What strangers send costs the time of members: a signature, the check of a chain.
void Server::Impl::await_turn(Link& link, std::string_view input) {
  link.held.append(input);
  if (link.held.size() > kHandshakeBytesMax) return reject(link, "TLS: a handshake without end");
  link.waits_turn = true;
  unproven_.want_turn(link.id);
  serve_unproven();
  if (!link.waits_turn || link.state == LinkState::kClosed) return;
  say_that_unproven_wait(link);
  watch(link);
}

void Server::Impl::serve_unproven() {
  while (const auto id = unproven_.next_turn(Clock::now())) {
    Link* link = find(*id);
    if (link == nullptr) continue;
    link->waits_turn = false;
    const std::string input = std::exchange(link->held, {});
    const TimePoint begun = Clock::now();
    open_sealed(*link, input);
    const TimePoint done = Clock::now();
    unproven_.spent(done - begun, done);
    if (find(*id) != nullptr) watch(*link);
  }
  arm_unproven();
}

void Server::Impl::arm_unproven() {
  const auto next_at = unproven_.next_at();
  if (!next_at || closed_) return;
  unproven_timer_.expires_at(*next_at);
  unproven_timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (error || self->closed_) return;
    self->serve_unproven();
    self->settle_all();
  });
}

void Server::Impl::say_that_unproven_wait(const Link& link) {
  constexpr std::size_t kMany = 16;
  if (unproven_.waiting() < kMany || !options_.log) return;
  if (!unproven_quota_.try_take(Clock::now())) return;
  options_.log->warn(
      "{} handshakes wait: peers that have proved nothing get half of the time, one address after "
      "the other; peer={}",
      unproven_.waiting(), net::peer_text(link));
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
  unproven_.remove(link.id);
}

SharedFrame Server::Impl::sealed(Link& link, const Frame& frame) {
  return std::make_shared<Frame>(link.tls->seal(frame.bytes), unsent_);
}

}  // namespace ddprun::coordinator
