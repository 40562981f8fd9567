// Two sessions with certificates, whose bytes the test carries: who believes whom, and what is said
// about those who are not believed.
#include <openssl/ssl.h>

#include "net/tls.hpp"
#include "tests/support/certificates.hpp"
#include "tests/support/secret.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;
using namespace ddprun::net;
using namespace ddprun::test;

namespace {

SharedTlsContext context_of(const Certificates& own) {
  auto made = TlsContext::make(own);
  if (!made) FAIL(made.error().sentence);
  return *made;
}

/// An agent that connects to 127.0.0.1, and the coordinator there.
struct Ends {
  Ends(SharedTlsContext agents, SharedTlsContext coordinators,
       const std::string& host = "127.0.0.1")
      : agent(TlsSession::connecting(std::move(agents), host)),
        coordinator(TlsSession::accepting(std::move(coordinators))) {}
  Ends(const Certificates& agents, const Certificates& coordinators,
       const std::string& host = "127.0.0.1")
      : Ends(context_of(agents), context_of(coordinators), host) {}

  /// Carries messages until neither side has more to say.
  void shake_hands() {
    while (true) {
      const std::string there = agent->take_output();
      if (!there.empty()) take(*coordinator, there, of_coordinator);
      const std::string back = coordinator->take_output();
      if (!back.empty()) take(*agent, back, of_agent);
      if (there.empty() && back.empty()) return;
    }
  }
  static void take(TlsSession& session, const std::string& bytes, std::string& why) {
    std::string plain;
    const auto opened = session.receive(bytes, plain);
    CHECK(plain.empty());
    if (!opened && why.empty()) why = opened.error().sentence;
  }
  std::unique_ptr<TlsSession> agent;
  std::unique_ptr<TlsSession> coordinator;
  std::string of_agent;        // why it has ended the session
  std::string of_coordinator;  // the same
};

std::string why_not(const Result<SharedTlsContext>& made) {
  return made ? "" : made.error().sentence;
}

}  // namespace

TEST_CASE("two owners of certificates of one CA believe and read each other") {
  TestCa ca;
  for (const std::string host : {"127.0.0.1", "localhost"}) {
    CAPTURE(host);
    Ends ends(ca.issue(), ca.issue(), host);
    ends.shake_hands();
    CHECK(ends.of_agent + ends.of_coordinator == "");
    REQUIRE(ends.agent->is_established());
    REQUIRE(ends.coordinator->is_accepted());
    CHECK_FALSE(ends.agent->is_accepted());  // the coordinator has not said anything yet
    CHECK(ends.coordinator->run().empty());
    CHECK(ends.coordinator->peer_names("127.0.0.1"));
    CHECK_FALSE(ends.coordinator->peer_names("127.0.0.2"));
    CHECK_FALSE(ends.coordinator->peer_names("localhost"));  // no address
    std::string plain;
    REQUIRE(ends.coordinator->receive(ends.agent->seal("hello"), plain).has_value());
    CHECK(plain == "hello");
    REQUIRE(ends.agent->receive(ends.coordinator->seal(" there"), plain).has_value());
    CHECK(plain == "hello there");
    CHECK(ends.agent->is_accepted());
  }
}

TEST_CASE("a certificate that is wrong is refused before anything is said, in one sentence") {
  TestCa ca;
  TestCa other("other CA");
  TestCa namesake;
  Certificates mixed = ca.issue();  // believes the other CA
  mixed.ca = other.ca();
  const Wanted expired{"IP:127.0.0.1", -7200, -3600};
  const Wanted future{"IP:127.0.0.1", 3600, 7200};
  const Wanted far{"IP:10.0.0.1,DNS:node0"};
  const Wanted unnamed{""};  // its CN, which names the host, does not count
  const Wanted server{"IP:127.0.0.1", -3600, 3600, "serverAuth"};
  const Wanted client{"IP:127.0.0.1", -3600, 3600, "clientAuth"};
  struct Case {
    Certificates agent;
    Certificates coordinator;
    std::string of_agent;
    std::string of_coordinator;
  };
  const std::string signed_by = kNotSignedBy + "the CA of ";
  const std::vector<Case> cases{
      {mixed, ca.issue(), signed_by + mixed.ca.shown, ": unknown CA"},
      {ca.issue(), mixed, ": unknown CA", signed_by + mixed.ca.shown},
      {namesake.issue(), ca.issue(), signed_by, "the CA of that name"},
      {ca.issue(), ca.issue(expired), "certificate has expired", ": expired"},
      {ca.issue(expired), ca.issue(), ": expired", "certificate has expired"},
      {ca.issue(future), ca.issue(), "refuses the certificate", "not yet valid"},
      {ca.issue(), ca.issue(far), "does not name 127.0.0.1 (subjectAltName)", "bad certificate"},
      {ca.issue(), ca.issue(unnamed), "does not name 127.0.0.1", "bad certificate"},
      {ca.issue(), ca.issue(client), "extendedKeyUsage needs serverAuth", "for another purpose"},
      {ca.issue(server), ca.issue(), "for another purpose", "extendedKeyUsage needs clientAuth"},
      {ca.issue(far), ca.issue(server), "", ""},  // an agent may have any name
  };
  for (const Case& each : cases) {
    CAPTURE(each.of_agent, each.of_coordinator);
    Ends ends(each.agent, each.coordinator);
    ends.shake_hands();
    CHECK_THAT(ends.of_agent, ContainsSubstring(each.of_agent));
    CHECK_THAT(ends.of_coordinator, ContainsSubstring(each.of_coordinator));
    CHECK(ends.of_agent.empty() == each.of_agent.empty());
    if (each.of_agent.empty()) continue;
    CHECK_FALSE(ends.agent->is_accepted());
    CHECK_FALSE(ends.coordinator->is_established());
  }
}

TEST_CASE("a secret and certificates do not believe each other, and nothing is said") {
  TestCa ca;
  const auto secret = *TlsContext::make(secret_of('a'));
  const auto certificates = context_of(ca.issue());
  for (const bool agent_has_secret : {true, false}) {
    CAPTURE(agent_has_secret);
    Ends ends(agent_has_secret ? secret : certificates, agent_has_secret ? certificates : secret);
    ends.shake_hands();
    CHECK_THAT(
        ends.of_agent,
        ContainsSubstring(agent_has_secret ? "TLS: " : "as a server without a certificate does"));
    CHECK_THAT(ends.of_coordinator, Catch::Matchers::StartsWith("TLS: "));
    CHECK_FALSE(ends.agent->is_accepted());
    CHECK_FALSE(ends.coordinator->is_established());
  }
}

TEST_CASE("a client without a certificate is refused by a coordinator with certificates") {
  TestCa ca;
  Certificates none;
  none.ca = ca.ca();
  Ends ends(*TlsContext::make_client(none), context_of(ca.issue()));
  ends.shake_hands();
  CHECK(ends.of_coordinator == "TLS: it has no certificate");
  CHECK_THAT(ends.of_agent, ContainsSubstring(kWantsCertificate));
}

TEST_CASE("what does not speak TLS is named as such") {
  TestCa ca;
  Ends ends(ca.issue(), ca.issue());
  std::string plain;
  const auto opened = ends.agent->receive("HTTP/1.1 400 Bad Request\r\n\r\n", plain);
  REQUIRE_FALSE(opened.has_value());
  CHECK(opened.error().sentence == "TLS: " + kSpeaksNoTls);
}

TEST_CASE("a file that cannot be used is named, with what is wrong and what to try") {
  TestCa ca;
  const Certificates good = ca.issue();
  const Certificates second = ca.issue();
  const auto with = [&](PemFile Certificates::*which, const PemFile& file) {
    Certificates changed = good;
    changed.*which = file;
    return why_not(TlsContext::make(changed));
  };
  const PemFile text = ca.file("text", "hello\n");
  const PemFile missing{"/nowhere.pem", "--file=/nowhere.pem"};
  const PemFile folder{"/", "--file=/"};
  const PemFile sealed =
      ca.file("sealed",
              "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAA=\n-----END ENCRYPTED PRIVATE KEY-----\n");
  for (const auto which : {&Certificates::cert, &Certificates::key, &Certificates::ca}) {
    CHECK(with(which, missing) == "--file=/nowhere.pem: cannot read it: No such file or directory");
    CHECK_THAT(with(which, folder), ContainsSubstring("not a regular file"));
  }
  CHECK_THAT(with(&Certificates::cert, text), ContainsSubstring("it has no certificate in PEM"));
  CHECK_THAT(with(&Certificates::ca, text), ContainsSubstring(kNoCaInFile));
  for (const PemFile& file : {text, sealed}) {
    CHECK_THAT(with(&Certificates::key, file), ContainsSubstring("without a passphrase"));
  }
  CHECK_THAT(with(&Certificates::key, second.key),
             ContainsSubstring(kNotTheKeyOf + good.cert.path));
  REQUIRE(::chmod(good.key.path.c_str(), 0644) == 0);
  CHECK_THAT(with(&Certificates::key, good.key), ContainsSubstring(kOthersMayAccess + "644)"));
}

TEST_CASE("certificates have a limit, so that a stranger's take little memory") {
  TestCa ca;
  const auto of_bytes = [&](long size) {
    Wanted wanted;
    while (static_cast<long>(wanted.names.size()) < size) {
      wanted.names += ",DNS:" + std::string(60, 'n');  // as long in the certificate, but for 2
    }
    return ca.issue(wanted);
  };
  Ends below(of_bytes(kCertificateBytesMax - 2048), ca.issue());
  below.shake_hands();
  CHECK(below.coordinator->is_established());
  Ends above(of_bytes(kCertificateBytesMax + 2048), ca.issue());
  above.shake_hands();
  CHECK_THAT(above.of_coordinator, ContainsSubstring("excessive message size"));
  CHECK_FALSE(above.coordinator->is_established());
}

TEST_CASE("a certificate and its key may be in one file") {
  TestCa ca;
  Certificates own = ca.issue();
  std::ifstream cert(own.cert.path);
  std::ifstream key(own.key.path);
  const std::string both = std::string{std::istreambuf_iterator<char>(cert), {}} +
                           std::string{std::istreambuf_iterator<char>(key), {}};
  own.cert = ca.file("both", both);
  own.key = {};
  Ends ends(own, ca.issue());
  ends.shake_hands();
  CHECK(ends.coordinator->is_established());
}
