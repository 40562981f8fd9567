// A coordinator with a secret or certificates, as an agent sees it.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "net/tls.hpp"
#include "tests/client/scene.hpp"
#include "tests/support/secret.hpp"

namespace ddprun::client {

inline net::SharedTlsContext tls_of(const SharedSecret& secret) {
  auto context = net::TlsContext::make(secret);
  REQUIRE(context.has_value());
  return *context;
}

/// The coordinator's side of a link.
class SealedPeer {
 public:
  SealedPeer(Peer peer, const SharedSecret& secret) : SealedPeer(std::move(peer), tls_of(secret)) {}
  SealedPeer(Peer peer, net::SharedTlsContext tls)
      : peer_(std::move(peer)), tls_(net::TlsSession::accepting(std::move(tls))) {}

  /// Reads until the handshake is complete, or has failed.
  bool connect() {
    while (!tls_->is_established()) {
      if (!read()) return false;
    }
    return true;
  }
  /// The next `count` bytes in clear.
  std::string receive(std::size_t count) {
    while (plain_.size() < count) REQUIRE(read());
    const std::string bytes = plain_.substr(0, count);
    plain_.erase(0, count);
    return bytes;
  }
  void say(const protocol::Message& message) {
    peer_.send(tls_->seal(protocol::frame(protocol::encode(message))));
  }
  /// What the agent has said.
  [[nodiscard]] const std::string& unread() const { return plain_; }
  [[nodiscard]] Peer& peer() { return peer_; }

 private:
  bool read() {
    const std::string bytes = peer_.receive(1);
    if (bytes.empty()) return false;
    const bool opened = tls_->receive(bytes, plain_).has_value();
    peer_.send(tls_->take_output());
    return opened;
  }

  Peer peer_;
  std::unique_ptr<net::TlsSession> tls_;
  std::string plain_;
};

}  // namespace ddprun::client
