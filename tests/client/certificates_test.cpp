// An agent with certificates, against a scripted peer: it says nothing to one that its CA has not
// signed, and believes nothing that it says.
#include "tests/support/certificates.hpp"
#include "rendezvous/client/who_answers.hpp"
#include "tests/client/sealed.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;
using namespace ddprun::client;
using namespace ddprun::protocol;
using namespace ddprun::test;

namespace {

net::SharedTlsContext tls_by(const Certificates& own) {
  auto made = net::TlsContext::make(own);
  REQUIRE(made.has_value());
  return *made;
}

/// An agent that connects to 127.0.0.1 in order to reach `host` (empty: that address).
struct CertifiedScene {
  explicit CertifiedScene(const std::string& host = "") : expected(host) { agent->connect(1); }
  Peer accept() {
    Peer peer = listener.accept();
    CHECK(agent.next<LinkUp>().link == 1);
    return peer;
  }
  /// Why the agent ends.
  std::string refusal() {
    const auto refused = std::get<Refused>(agent.next<Incoming>().message);
    agent.next<LinkDown>();
    return refused.sentence;
  }
  std::string expected;
  TestCa ca;
  asio::io_context io;
  Listener listener{io};
  Agent agent{io, "127.0.0.1", listener.port(), {tls_by(ca.issue()), "run", expected}};
};

}  // namespace

TEST_CASE("a coordinator with a wrong certificate is named with the cause, and told nothing") {
  TestCa other("other CA");
  struct Case {
    std::string cause;
    std::string host;
    std::function<Certificates(TestCa&)> of_peer;
  };
  const std::vector<Case> cases{
      {kNotSignedBy + "the CA of", "", [&](TestCa&) { return other.issue(); }},
      {"certificate has expired", "",
       [](TestCa& ca) {
         return ca.issue({"IP:127.0.0.1", -7200, -3600});
       }},
      {"does not name 127.0.0.1", "", [](TestCa& ca) { return ca.issue({"DNS:node0"}); }},
      {"does not name node0", "node0", [](TestCa& ca) { return ca.issue(); }},
  };
  for (const Case& each : cases) {
    CAPTURE(each.cause);
    CertifiedScene scene(each.host);
    SealedPeer peer(scene.accept(), tls_by(each.of_peer(scene.ca)));
    CHECK_FALSE(peer.connect());
    CHECK(peer.unread().empty());
    const std::string refusal = scene.refusal();
    CHECK_THAT(refusal, ContainsSubstring(each.cause));
    CHECK_THAT(refusal, ContainsSubstring("compare --rdzv-tls-cert"));
  }
}

TEST_CASE("a coordinator that refuses the certificate of an agent ends it with one sentence") {
  CertifiedScene scene;
  Certificates strict = scene.ca.issue();
  TestCa other("other CA");
  strict.ca = other.ca();
  SealedPeer peer(scene.accept(), tls_by(strict));
  CHECK_FALSE(peer.connect());
  CHECK_THAT(scene.refusal(), ContainsSubstring(kRefusesCertificate));
}

TEST_CASE("a coordinator with a secret, with nothing, or in clear is not believed") {
  for (const std::string kind : {"secret", "nothing", "clear"}) {
    CAPTURE(kind);
    CertifiedScene scene;
    SealedPeer peer(scene.accept(), secret_of('a'));
    if (kind == "secret") {
      CHECK_FALSE(peer.connect());
    } else {
      CHECK(peer.peer().receive(1) == "\x16");  // a handshake of TLS, and nothing in clear
      peer.peer().send(kind == "clear" ? frame(encode(Done{0, "over"}))
                                       : std::string(net::kTlsRefusal));
    }
    CHECK_THAT(scene.refusal(), ContainsSubstring(kNoTrustedLink + "127.0.0.1"));
    CHECK(scene.agent.heard_nothing_more());
    CHECK(scene.listener.nobody_waits());  // it is not asked in clear what it is
  }
}

TEST_CASE("a coordinator that has moved has to name where it is now, and at the first place that") {
  CertifiedScene scene("node0");
  scene.accept();
  scene.agent->close(1);
  const auto connects = [&](LinkId link, const std::string& host, const std::string& names) {
    scene.agent->aim(host, scene.listener.port());
    scene.agent->connect(link);
    SealedPeer peer(scene.listener.accept(), tls_by(scene.ca.issue({names})));
    scene.agent.next<LinkUp>();
    return peer.connect();
  };
  CHECK(connects(2, "localhost", "DNS:localhost"));
  CHECK(connects(3, "127.0.0.1", "DNS:node0"));
  CHECK_FALSE(connects(4, "localhost", "DNS:node0"));
}
