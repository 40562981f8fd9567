// A coordinator with certificates: its agents, and every kind of stranger.
#include <functional>

#include "tests/coordinator/sealed.hpp"
#include "tests/support/certificates.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;
using namespace ddprun::coordinator;
using namespace ddprun::test;

namespace {

constexpr const char* kHere = "127.0.0.1";

net::SharedTlsContext tls_by(const Certificates& own) {
  auto made = net::TlsContext::make(own);
  REQUIRE(made.has_value());
  return *made;
}

ServerOptions with_certificates(TestCa& ca) {
  ServerOptions options;
  options.certificates = ca.issue();
  return options;
}

}  // namespace

TEST_CASE("a stranger without a certificate of the CA is refused, counted and logged once") {
  TestCa ca;
  TestCa other("other CA");
  LiveCoordinator coordinator(with_certificates(ca));
  Certificates foreign = other.issue();
  foreign.ca = ca.ca();  // it believes the coordinator
  Certificates none;
  none.ca = ca.ca();
  struct Kind {
    net::SharedTlsContext tls;
    std::string logged;
  };
  const std::vector<Kind> strangers{
      {tls_by(foreign), "TLS: " + kNotSignedBy},
      {tls_by(ca.issue({"IP:127.0.0.1", -7200, -3600})), "TLS: its certificate is refused"},
      {tls_by(other.issue()), "TLS: " + kRefusesCertificate},
      {*net::TlsContext::make_client(none), "TLS: it has no certificate"},
      {tls_of(secret_of('a')), "TLS: " + kRefusesCertificate},
  };
  std::int64_t before = 0;
  for (const Kind& stranger : strangers) {
    CAPTURE(stranger.logged);
    for (int time = 0; time < 2; ++time) {
      SealedAgent agent(coordinator.port(), stranger.tls, kHere);
      (void)agent.connect();  // a client learns only later that it is refused
      CHECK(agent.socket().receive(100'000).size() < 1'000);  // until it is closed
    }
    before += 2;
    CHECK(eventually([&] { return rejected(coordinator) == before; }));  // the page is cached
    CHECK_THAT(coordinator.log(), ContainsSubstring("closed a connection: " + stranger.logged));
  }
  const std::string log = coordinator.log();
  CHECK(count_of(log, "[warning] closed a connection: TLS: " + kNotSignedBy) == 1);
}

TEST_CASE("an agent in clear is told that it lacks a certificate, and learns no more") {
  TestCa ca;
  LiveCoordinator coordinator(with_certificates(ca));
  Agent agent(coordinator.port(), hello_of("run", "a", 1));
  CHECK_THAT(agent.await<protocol::Refused>().sentence, ContainsSubstring("--rdzv-tls-cert"));
  CHECK(agent.closed());
  CHECK(eventually([&] { return rejected(coordinator) == 1; }));
  CHECK_THAT(coordinator.log(), ContainsSubstring("an agent without a certificate"));
}
