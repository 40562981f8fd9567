// An agent with a secret, against a scripted peer: it says nothing to one that has not proved that
// it knows it, and believes nothing that it says.
#include "rendezvous/client/connection.hpp"
#include "rendezvous/client/who_answers.hpp"
#include "tests/client/sealed.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;
using namespace ddprun::client;
using namespace ddprun::protocol;
using namespace ddprun::test;

namespace {

struct Scene {
  Scene() { agent->connect(1); }
  Peer accept(LinkId link = 1) {
    Peer peer = listener.accept();
    CHECK(agent.next<LinkUp>().link == link);
    return peer;
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(listener.port()); }
  std::string refusal() {
    const auto refused = std::get<Refused>(agent.next<Incoming>().message);
    agent.next<LinkDown>();
    return refused.sentence;
  }
  asio::io_context io;
  Listener listener{io};
  Agent agent{io, "127.0.0.1", listener.port(), {tls_of(secret_of('a')), "run"}};
};

}  // namespace

TEST_CASE(
    "nothing but a hello of TLS is sent before the peer has proved that it knows the secret") {
  Scene scene;
  Peer peer = scene.accept();
  scene.agent->send(1, Leave{1, "a reason that only the run may read"});
  const std::string head = peer.receive(5);
  CHECK(head.substr(0, 2) == "\x16\x03");
  const std::size_t length =
      static_cast<unsigned char>(head[3]) * 256U + static_cast<unsigned char>(head[4]);
  const std::string hello = peer.receive(length);
  CHECK(hello.find("reason") == std::string::npos);
  peer.send(frame(encode(Done{0, "over"})));
  CHECK_THAT(scene.refusal(), ContainsSubstring(kHasOtherSecret));
}

TEST_CASE("with a secret no server is asked in clear what kind of server it is") {
  Scene scene;
  scene.accept().receive(5);
  CHECK_FALSE(scene.agent.next<LinkDown>().evidence.empty());
  CHECK(scene.agent.heard_nothing_more());
  CHECK(scene.listener.nobody_waits());
}

TEST_CASE("a coordinator with another secret, or with none, is named with what to compare") {
  for (const bool none : {false, true}) {
    CAPTURE(none);
    Scene scene;
    SealedPeer peer(scene.accept(), secret_of('b'));
    if (none) {
      peer.peer().receive(5);
      peer.peer().send(std::string(net::kTlsRefusal));
    } else {
      CHECK_FALSE(peer.connect());
    }
    const std::string refusal = scene.refusal();
    CHECK(refusal == has_another_secret(scene.address()));
    CHECK_THAT(refusal, ContainsSubstring(kHasOtherSecret));
  }
}

TEST_CASE("a port that a stranger has taken ends no run: done in clear is no message") {
  Scene scene;
  {
    SealedPeer peer(scene.accept(), secret_of('a'));
    REQUIRE(peer.connect());
    peer.say(Beat{});
    scene.agent.next<Incoming>();
  }
  scene.agent.next<LinkDown>();
  for (LinkId link = 2; link < 5; ++link) {
    scene.agent->connect(link);
    Peer squatter = scene.accept(link);
    squatter.receive(5);
    if (link == 2) squatter.send(frame(encode(Done{0, "over"})));
    if (link == 3) squatter.send(std::string(net::kTlsRefusal));
    if (link == 4) squatter.close();
    CHECK_FALSE(scene.agent.next<LinkDown>().evidence.empty());
  }
  CHECK(scene.agent.heard_nothing_more());
}

TEST_CASE("a coordinator that ends in the middle of a handshake is tried again") {
  Scene scene;
  scene.accept().close();
  CHECK_THAT(scene.agent.next<LinkDown>().evidence,
             ContainsSubstring("before it proved that it knows the secret"));
  scene.agent->connect(2);
  SealedPeer peer(scene.accept(2), secret_of('a'));
  CHECK(peer.connect());
}

TEST_CASE("an agent that ends in the middle of a handshake does not wait for it") {
  Scene scene;
  Peer peer = scene.accept();
  scene.agent->send(1, Leave{1, "end"});
  scene.agent->close(1);
  scene.agent.flush();
  CHECK(scene.agent.heard_nothing_more());
}
