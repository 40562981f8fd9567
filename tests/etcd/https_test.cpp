// Client with TLS, against a scripted server: the same requests and answers, to no other server.
#include <boost/asio/io_context.hpp>

#include "rendezvous/etcd/client.hpp"
#include "tests/client/scene.hpp"
#include "tests/support/certificates.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;
using namespace ddprun::etcd;
using namespace ddprun::test;
using client::Listener;
using client::Peer;
using client::runs_until;
using std::chrono::seconds;

namespace {

/// The server's side of a connection.
class HttpsPeer {
 public:
  HttpsPeer(Peer peer, net::SharedTlsContext tls)
      : peer_(std::move(peer)), session_(net::TlsSession::accepting(std::move(tls))) {}

  /// What has come in clear once it ends like this, or once the connection has ended.
  std::string receive_until(const std::string& end) {
    while (!plain_.ends_with(end)) {
      const std::string bytes = peer_.receive(1);
      if (bytes.empty()) break;
      const bool opened = session_->receive(bytes, plain_).has_value();
      peer_.send(session_->take_output());
      if (!opened) break;
    }
    return plain_;
  }
  void send(const std::string& text) { peer_.send(session_->seal(text)); }
  /// Each byte in a record of its own.
  void send_slowly(const std::string& text) {
    for (const char one : text) send(std::string(1, one));
  }
  [[nodiscard]] Peer& peer() { return peer_; }

 private:
  Peer peer_;
  std::unique_ptr<net::TlsSession> session_;
  std::string plain_;
};

struct HttpsScene {
  HttpsScene() {
    ClientOptions options;
    options.endpoints.push_back({"127.0.0.1", listener.port()});
    options.tls = *net::TlsContext::make_client(ca.issue());
    client = std::make_unique<Client>(io.get_executor(), options);
  }
  HttpsPeer accept(const Certificates& own) {
    return {listener.accept(), *net::TlsContext::make(own)};
  }
  void call() {
    client->call("/v3/kv/range", "{}", seconds(5), [this](Reply got) { reply = std::move(got); });
  }
  Reply& answer() {
    REQUIRE(runs_until(io, [this] { return reply.has_value(); }));
    return *reply;
  }
  TestCa ca;
  client::asio::io_context io;
  Listener listener{io};
  std::unique_ptr<Client> client;
  std::optional<Reply> reply;
};

}  // namespace

TEST_CASE("https: a call is one request inside TLS, and its answer the body, in any pieces") {
  HttpsScene scene;
  scene.call();
  HttpsPeer peer = scene.accept(scene.ca.issue());
  CHECK_THAT(peer.receive_until("\r\n\r\n{}"),
             Catch::Matchers::StartsWith("POST /v3/kv/range HTTP/1.1\r\n"));
  peer.send_slowly("HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{\"header\":{}}");
  CHECK(scene.answer().answered);
  CHECK(scene.answer().body == R"({"header":{}})");
}

TEST_CASE("https: a watch brings lines as they come, and says when it ends") {
  HttpsScene scene;
  std::vector<std::string> lines;
  std::string ended;
  scene.client->watch(
      "{}", seconds(5), [&](std::string_view line) { lines.emplace_back(line); },
      [&](const std::string& why) { ended = why; });
  HttpsPeer peer = scene.accept(scene.ca.issue());
  peer.receive_until("{}");
  peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\none\n\r\n");
  REQUIRE(runs_until(scene.io, [&] { return lines.size() == 1; }));
  peer.send("4\r\ntwo\n\r\n");
  REQUIRE(runs_until(scene.io, [&] { return lines.size() == 2; }));
  CHECK(lines == std::vector<std::string>{"one", "two"});
  peer.peer().close();
  REQUIRE(runs_until(scene.io, [&] { return !ended.empty(); }));
}

TEST_CASE("https: an answer that is cut off is no answer") {
  HttpsScene scene;
  scene.call();
  HttpsPeer peer = scene.accept(scene.ca.issue());
  peer.receive_until("{}");
  peer.send("HTTP/1.1 200 OK\r\n\r\n{\"header\":{}}");  // as long as the connection lasts
  peer.peer().close();
  CHECK_FALSE(scene.answer().answered);
  CHECK_FALSE(scene.answer().refused);
}

TEST_CASE("https: a server that is not believed is asked nothing, and the user is told at once") {
  HttpsScene scene;
  TestCa other("other CA");
  scene.call();
  HttpsPeer peer = scene.accept(other.issue());
  CHECK(peer.receive_until("{}").empty());
  CHECK(scene.answer().refused);
  CHECK_THAT(scene.answer().failure, ContainsSubstring(kNotSignedBy));
}

TEST_CASE("https: a server that ends the connection at once gets another try, with a hint") {
  HttpsScene scene;
  scene.call();
  scene.listener.accept().close();
  CHECK_FALSE(scene.answer().refused);
  CHECK_THAT(scene.answer().failure, ContainsSubstring("pass --rdzv-conf protocol=http"));
}
