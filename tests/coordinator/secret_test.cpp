// A coordinator with a secret: its agents, and every kind of stranger.
#include <functional>

#include "tests/coordinator/sealed.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;
using namespace ddprun::coordinator;
using namespace ddprun::test;
using namespace std::chrono_literals;
using namespace std::string_literals;

namespace {

ServerOptions with_secret(Limits limits = {}) {
  ServerOptions options;
  options.secret = secret_of('a');
  options.limits = limits;
  return options;
}

std::string flipped(std::string bytes, std::size_t at) {
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  return bytes;
}

/// What a stranger does on a connection of its own. Everything it knows it has recorded.
struct Stranger {
  std::string what;
  std::string logged;
  std::function<void(Client&, const SealedAgent& recorded)> acts;
};

const std::vector<Stranger>& strangers() {
  static const std::vector<Stranger> kAll{
      {"has another secret", kPeerHasOtherSecret,
       [](Client& client, const SealedAgent&) {
         client.send(net::TlsSession::connecting(tls_of(secret_of('b')), "run")->take_output());
       }},
      {"replays a handshake", "TLS: ",
       [](Client& client, const SealedAgent& recorded) {
         client.send(recorded.client_hello());
         CHECK_FALSE(client.receive(1).empty());  // the coordinator's own fresh part
         client.send(recorded.finished());
       }},
      {"changes a recorded hello", kPeerHasOtherSecret,
       [](Client& client, const SealedAgent& recorded) {
         client.send(flipped(recorded.client_hello(), recorded.client_hello().size() - 1));
       }},
      {"sends the coordinator's answer back", "TLS: ",
       [](Client& client, const SealedAgent& recorded) {
         client.send(recorded.client_hello());
         client.send(client.receive(64));
       }},
      {"asks for an older TLS", "TLS: ",
       [](Client& client, const SealedAgent&) {
         // A hello of TLS 1.2: version, random, no session, one suite, no compression.
         client.send("\x16\x03\x01\x00\x2d\x01\x00\x00\x29\x03\x03"s + std::string(32, 'r') +
                     "\x00\x00\x02\xc0\x2f\x01\x00"s);
       }},
      {"announces a record that is too long", "TLS: ",
       [](Client& client, const SealedAgent&) { client.send("\x16\x03\x01\xff\xff"s + "xxxx"); }},
      {"sends noise after a first byte of TLS", "TLS: ",
       [](Client& client, const SealedAgent&) { client.send("\x16 noise, and more of it"s); }},
      {"speaks in clear", kWithoutSecret,
       [](Client& client, const SealedAgent&) {
         client.send("DDPR" + protocol::frame(protocol::encode(hello_of("run", "b", 2))));
       }},
      {"speaks in clear in the middle of a handshake", "TLS: ",
       [](Client& client, const SealedAgent& recorded) {
         client.send(recorded.client_hello());
         client.send("DDPR" + protocol::frame(protocol::encode(hello_of("run", "b", 2))));
       }},
  };
  return kAll;
}

/// What an attacker between an agent and its coordinator does to the records of a link.
struct Meddler {
  std::string what;
  std::function<std::string(SealedAgent&)> makes;  // what arrives
};

const std::vector<Meddler>& meddlers() {
  const auto beat = [](SealedAgent& agent) { return agent.sealed(protocol::Beat{}); };
  static const std::vector<Meddler> kAll{
      {"changes a bit", [=](SealedAgent& agent) { return flipped(beat(agent), 9); }},
      {"repeats a record",
       [=](SealedAgent& agent) {
         const std::string once = beat(agent);
         return once + once;
       }},
      {"reorders two records",
       [=](SealedAgent& agent) {
         const std::string first = beat(agent);
         return beat(agent) + first;
       }},
      {"leaves a record out",
       [=](SealedAgent& agent) {
         (void)beat(agent);
         return beat(agent);
       }},
      {"announces a longer record", [](SealedAgent&) { return "\x17\x03\x03\x48\x01x"s; }},
      {"continues in clear",
       [](SealedAgent&) { return protocol::frame(protocol::encode(protocol::Beat{})); }},
  };
  return kAll;
}

}  // namespace

TEST_CASE("a stranger without the secret is refused, counted and logged once") {
  LiveCoordinator coordinator(with_secret());
  SealedAgent recorded(coordinator.port());
  recorded.join(hello_of("run", "a", 2));
  recorded.await<protocol::Waiting>();
  std::int64_t before = 0;
  for (const Stranger& stranger : strangers()) {
    CAPTURE(stranger.what);
    for (int time = 0; time < 2; ++time) {
      Client client(coordinator.port());
      stranger.acts(client, recorded);
      client.finish_sending();
      std::string answer = client.receive(1'000'000);
      CAPTURE(answer);
      CHECK(answer.find("Waiting") == std::string::npos);
    }
    before += 2;
    CHECK(eventually([&] { return rejected(coordinator) == before; }));  // the page is cached
    const std::string log = coordinator.log();
    CAPTURE(log);
    CHECK_THAT(log, ContainsSubstring("[warning] closed a connection: " + stranger.logged));
  }
  const std::string log = coordinator.log();
  CHECK(count_of(log, "[warning] closed a connection: " + kPeerHasOtherSecret) == 1);
  CHECK(count_of(log, "[warning] closed a connection: " + kWithoutSecret) == 1);
  CHECK(log.find(std::string(8, 'a')) == std::string::npos);  // the secret is 40 of them
  // The run that was there is as before.
  SealedAgent second(coordinator.port());
  second.join(hello_of("run", "b", 2));
  CHECK(recorded.await<protocol::StartRound>().group_size == 2);
}

TEST_CASE("a run that exists and one that does not are answered alike without the secret") {
  LiveCoordinator coordinator(with_secret());
  SealedAgent member(coordinator.port());
  member.join(hello_of("run", "a", 2));
  member.await<protocol::Waiting>();
  std::vector<std::string> answers;
  for (const std::string run : {"run", "other"}) {
    SealedAgent guesser(coordinator.port(), secret_of('b'), run);
    guesser.socket().send(guesser.client_hello());
    answers.push_back(guesser.socket().receive(1'000));
  }
  CHECK(answers[0] == answers[1]);
  CHECK_FALSE(answers[0].empty());
}

TEST_CASE(
    "a record that was changed on its way ends that link alone, and is the loss of its node") {
  for (const Meddler& meddler : meddlers()) {
    CAPTURE(meddler.what);
    LiveCoordinator coordinator(with_secret());
    auto hello = elastic_hello("a");
    SealedAgent first(coordinator.port());
    first.join(hello);
    SealedAgent second(coordinator.port());
    second.join(elastic_hello("b"));
    while (first.await<protocol::StartRound>().group_size < 2) {
    }
    second.socket().send(meddler.makes(second));
    CHECK(second.closed());
    const auto log_has = [&](const std::string& what) {
      return eventually([&] { return coordinator.log().find(what) != std::string::npos; });
    };
    CHECK(log_has("lost b"));
    CHECK(log_has("[warning] closed a connection: TLS: "));
    first.say(protocol::Beat{});
    first.await<protocol::Beat>();
  }
}

TEST_CASE("an agent is clear about the secret that it lacks, and learns no more") {
  LiveCoordinator coordinator(with_secret());
  Agent agent(coordinator.port(), hello_of("run", "a", 1));
  const auto refused = agent.await<protocol::Refused>();
  CHECK_THAT(refused.sentence, ContainsSubstring("--rdzv-secret-file"));
  CHECK(agent.closed());
}

TEST_CASE("the link of one run says hello to no other") {
  LiveCoordinator coordinator(with_secret());
  SealedAgent agent(coordinator.port(), secret_of('a'), "run");
  agent.join(hello_of("other", "a", 1));
  CHECK(agent.await<protocol::Refused>().code == protocol::RefusalCode::kWrongRun);
}

TEST_CASE("behind the secret there are agents only: no status page, no store") {
  LiveCoordinator coordinator(with_secret());
  for (const std::string& bytes : {"GET /status HTTP/1.0\r\n\r\n"s, store::requests::validate()}) {
    SealedAgent agent(coordinator.port());
    REQUIRE(agent.connect());
    agent.socket().send(agent.sealed(bytes));
    CHECK(agent.closed());
  }
}

TEST_CASE("clients of the store and GET /status need no secret") {
  LiveCoordinator coordinator(with_secret());
  Client client(coordinator.port());
  CHECK(client.ask(store::requests::validate() + store::requests::ping(1), 4) ==
        store::requests::u32(1));
  Client browser(coordinator.port());
  CHECK_THAT(browser.ask("GET /status HTTP/1.0\r\n\r\n", 15), ContainsSubstring("200 OK"));
  CHECK(rejected(coordinator) == 0);
}

TEST_CASE("half a handshake is closed after the timeout, and so is one without a hello") {
  Limits limits;
  limits.idle_timeout = 50ms;
  LiveCoordinator coordinator(with_secret(limits));
  for (const std::size_t bytes : {1UL, 5UL, 100UL}) {
    SealedAgent agent(coordinator.port());
    agent.socket().send(agent.client_hello().substr(0, bytes));
    CHECK(agent.socket().closed());
  }
  SealedAgent silent(coordinator.port());
  silent.socket().send(silent.client_hello());
  CHECK_FALSE(silent.socket().receive(100'000).empty());  // until it is closed
  SealedAgent without_hello(coordinator.port());
  (void)without_hello.connect();  // a busy machine may not get so far
  CHECK(without_hello.closed());
  CHECK_THAT(coordinator.log(), ContainsSubstring(kNoFirstMessage + "50 ms"));
}

TEST_CASE("of too many incomplete handshakes the oldest is closed, and the newest succeeds") {
  Limits limits;
  limits.handshakes = 4;
  LiveCoordinator coordinator(with_secret(limits));
  std::vector<std::unique_ptr<SealedAgent>> hoard;
  for (std::size_t count = 0; count < 3 * limits.handshakes; ++count) {
    hoard.push_back(std::make_unique<SealedAgent>(coordinator.port()));
    hoard.back()->socket().send(hoard.back()->client_hello());
    CHECK_FALSE(hoard.back()->socket().receive(1).empty());
  }
  CHECK(hoard.front()->socket().receive(100'000).size() < 100'000);  // until it is closed
  CHECK_THAT(coordinator.log(),
             ContainsSubstring("more incomplete handshakes than handshakes = 4"));
  SealedAgent agent(coordinator.port());
  agent.join(hello_of("run", "a", 1));
  agent.await<protocol::StartRound>();
}
