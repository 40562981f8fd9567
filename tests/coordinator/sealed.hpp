// An agent with a secret or certificates, as the coordinator sees it: over a blocking socket.
#pragma once

#include <boost/json/parse.hpp>
#include <memory>
#include <string>

#include "net/tls.hpp"
#include "tests/coordinator/live.hpp"
#include "tests/support/secret.hpp"

namespace ddprun::coordinator {

inline net::SharedTlsContext tls_of(const SharedSecret& secret) {
  auto context = net::TlsContext::make(secret);
  REQUIRE(context.has_value());
  return *context;
}

/// Connections that the coordinator did not believe.
inline std::int64_t rejected(LiveCoordinator& coordinator) {
  std::string status;
  coordinator.on_thread([&](auto& server) { status = server->status_json(); });
  return boost::json::parse(status).at("rejected").as_int64();
}

inline std::size_t count_of(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

class SealedAgent {
 public:
  explicit SealedAgent(std::uint16_t port, const SharedSecret& secret = test::secret_of('a'),
                       const std::string& run = "run")
      : SealedAgent(port, tls_of(secret), run) {}
  /// `name`: of the run, or of the coordinator's host.
  SealedAgent(std::uint16_t port, net::SharedTlsContext tls, const std::string& name)
      : client_(port), tls_(net::TlsSession::connecting(std::move(tls), name)) {
    hello_ = tls_->take_output();
  }

  /// The first message of the handshake; sent by connect().
  [[nodiscard]] const std::string& client_hello() const { return hello_; }
  /// False: the coordinator ended it.
  bool connect() {
    client_.send(hello_);
    while (!tls_->is_established()) {
      if (!receive_some()) return false;
    }
    finished_ = tls_->take_output();
    client_.send(finished_);
    return true;
  }
  /// The last message of the handshake, after connect().
  [[nodiscard]] const std::string& finished() const { return finished_; }
  [[nodiscard]] std::string sealed(const std::string& bytes) { return tls_->seal(bytes); }
  [[nodiscard]] std::string sealed(const protocol::Message& message) {
    return sealed(protocol::frame(protocol::encode(message)));
  }
  void say(const protocol::Message& message) { client_.send(sealed(message)); }
  /// Connects and says hello.
  void join(const protocol::Hello& hello) {
    REQUIRE(connect());
    client_.send(sealed("DDPR" + protocol::frame(protocol::encode(hello))));
  }
  /// nullopt: the link has ended.
  std::optional<protocol::Message> try_next() {
    while (true) {
      auto body = reader_.next();
      REQUIRE(body.has_value());
      if (*body) {
        auto message = protocol::decode(**body);
        REQUIRE(message.has_value());
        return *message;
      }
      if (!receive_some()) return std::nullopt;
    }
  }
  template <class Kind>
  Kind await() {
    while (true) {
      const auto message = try_next();
      REQUIRE(message.has_value());
      if (const auto* wanted = std::get_if<Kind>(&*message)) return *wanted;
    }
  }
  bool closed() {
    while (try_next()) {
    }
    return true;
  }
  [[nodiscard]] Client& socket() { return client_; }

 private:
  bool receive_some() {
    const std::string bytes = client_.receive(1);
    if (bytes.empty()) return false;
    std::string plain;
    const bool opened = tls_->receive(bytes, plain).has_value();
    reader_.feed(plain);
    if (!opened) client_.send(tls_->take_output());  // why
    return opened;
  }

  Client client_;
  std::unique_ptr<net::TlsSession> tls_;
  protocol::FrameReader reader_;
  std::string hello_;
  std::string finished_;
};

}  // namespace ddprun::coordinator
