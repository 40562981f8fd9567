// Two sessions whose bytes the test carries, loses, changes and repeats: what comes out is what
// went in, or nothing.
#include "net/tls.hpp"

#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "tests/net/dumped_memory.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/secret.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;
using namespace ddprun::net;
using namespace ddprun::test;

namespace {

/// An agent of run 7f3a and its coordinator.
struct Pair {
  explicit Pair(const SharedSecret& of_agent = secret_of('a'),
                const SharedSecret& of_coordinator = secret_of('a'),
                const std::string& run = "7f3a")
      : agent(TlsSession::connecting(context(of_agent), run)),
        coordinator(TlsSession::accepting(context(of_coordinator))) {}

  static SharedTlsContext context(const SharedSecret& secret) {
    auto made = TlsContext::make(secret);
    REQUIRE(made.has_value());
    return *made;
  }
  /// Carries the messages of the handshake. False: one side refused.
  bool connect() {
    std::string plain;
    while (!coordinator->is_established()) {
      if (!coordinator->receive(agent->take_output(), plain)) return false;
      const std::string answer = coordinator->take_output();
      if (!answer.empty() && !agent->receive(answer, plain)) return false;
    }
    CHECK(plain.empty());
    return agent->is_established();
  }
  std::unique_ptr<TlsSession> agent;
  std::unique_ptr<TlsSession> coordinator;
};

std::string flipped(std::string bytes, std::size_t at) {
  bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
  return bytes;
}

/// What `session` makes of `bytes`; an error is "!".
std::string received(TlsSession& session, const std::string& bytes) {
  std::string plain;
  return session.receive(bytes, plain) ? plain : plain + "!";
}

struct FreeContext {
  void operator()(SSL_CTX* context) const { ::SSL_CTX_free(context); }
  void operator()(SSL* session) const { ::SSL_free(session); }
  void operator()(EVP_PKEY* key) const { ::EVP_PKEY_free(key); }
  void operator()(X509* certificate) const { ::X509_free(certificate); }
};
template <class Type>
using Owned = std::unique_ptr<Type, FreeContext>;

/// A TLS server as a stranger would run one: with a certificate, and without the secret.
struct ServerWithCertificate {
  ServerWithCertificate() {
    const Owned<EVP_PKEY> key(::EVP_EC_gen("P-256"));
    const Owned<X509> certificate(::X509_new());
    ::X509_set_version(certificate.get(), 2);
    ::X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -60);
    ::X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
    ::X509_set_pubkey(certificate.get(), key.get());
    REQUIRE(::X509_sign(certificate.get(), key.get(), ::EVP_sha256()) > 0);
    REQUIRE(::SSL_CTX_use_certificate(context.get(), certificate.get()) == 1);
    REQUIRE(::SSL_CTX_use_PrivateKey(context.get(), key.get()) == 1);
    session.reset(::SSL_new(context.get()));
    ::SSL_set_bio(session.get(), in, out);
    ::SSL_set_accept_state(session.get());
  }
  std::string answer(const std::string& bytes) {
    REQUIRE(::BIO_write(in, bytes.data(), static_cast<int>(bytes.size())) > 0);
    (void)::SSL_do_handshake(session.get());
    char* data = nullptr;
    const long size = BIO_get_mem_data(out, &data);
    return {data, static_cast<std::size_t>(size)};
  }
  Owned<SSL_CTX> context{::SSL_CTX_new(::TLS_server_method())};
  BIO* in = ::BIO_new(::BIO_s_mem());
  BIO* out = ::BIO_new(::BIO_s_mem());
  Owned<SSL> session;
};

}  // namespace

TEST_CASE("two owners of a secret prove it to each other, and read each other alone") {
  Pair pair;
  REQUIRE(pair.connect());
  CHECK(pair.coordinator->run() == "7f3a");
  const std::string large(100'000, 'x');
  for (const std::string& text : {std::string("DDPR"), large}) {
    const std::string there = pair.agent->seal(text);
    CHECK(there.find(text) == std::string::npos);
    CHECK(received(*pair.coordinator, there) == text);
    CHECK(received(*pair.agent, pair.coordinator->seal(text)) == text);
  }
}

TEST_CASE("records arrive in any pieces, and nothing of one before it is complete") {
  Pair pair;
  REQUIRE(pair.connect());
  const std::string sealed = pair.agent->seal("hello");
  for (std::size_t at = 0; at + 1 < sealed.size(); ++at) {
    CHECK(received(*pair.coordinator, sealed.substr(at, 1)).empty());
  }
  CHECK(received(*pair.coordinator, sealed.substr(sealed.size() - 1)) == "hello");
}

TEST_CASE("another secret is refused by both sides before either has said anything") {
  Pair pair(secret_of('a'), secret_of('b'));
  std::string plain;
  const auto refused = pair.coordinator->receive(pair.agent->take_output(), plain);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().sentence == kPeerHasOtherSecret);
  CHECK(received(*pair.agent, pair.coordinator->take_output()) == "!");
  CHECK_FALSE(pair.agent->is_established());
  CHECK_FALSE(pair.coordinator->is_established());
}

TEST_CASE("the key of one run opens no other: the name is part of it") {
  Pair pair(secret_of('a'), secret_of('a'), "run-a");
  std::string hello = pair.agent->take_output();
  hello.replace(hello.find("run-a"), 5, "run-b");
  CHECK(received(*pair.coordinator, hello) == "!");
}

TEST_CASE("a server with a certificate in place of the secret is refused") {
  Pair pair;
  ServerWithCertificate server;
  const std::string answer = server.answer(pair.agent->take_output());
  REQUIRE(answer.size() > 500);  // its certificate, in a handshake that is complete for it
  CHECK(received(*pair.agent, answer) == "!");
  CHECK_FALSE(pair.agent->is_established());
}

TEST_CASE("a flipped bit anywhere in the handshake lets no byte through that was not sent") {
  const std::size_t hello_bytes = Pair().agent->take_output().size();
  for (std::size_t at = 0; at < hello_bytes; ++at) {
    CAPTURE(at);
    Pair pair;
    std::string plain;
    const auto opened = pair.coordinator->receive(flipped(pair.agent->take_output(), at), plain);
    CHECK(plain.empty());
    CHECK_FALSE(pair.coordinator->is_established());
    // The version of a record is ignored (RFC 8446, 5.1), and a greater length is waited for.
    if (at > 8) CHECK_FALSE(opened.has_value());
  }
  Pair model;
  std::string plain;
  REQUIRE(model.coordinator->receive(model.agent->take_output(), plain).has_value());
  const std::size_t answer_bytes = model.coordinator->take_output().size();
  for (std::size_t at = 0; at < answer_bytes; ++at) {
    CAPTURE(at);
    Pair pair;
    REQUIRE(pair.coordinator->receive(pair.agent->take_output(), plain).has_value());
    const bool opened =
        pair.agent->receive(flipped(pair.coordinator->take_output(), at), plain).has_value();
    if (!opened || !pair.agent->is_established()) continue;
    // What was flipped had no meaning; the session is whole.
    REQUIRE(pair.coordinator->receive(pair.agent->take_output(), plain).has_value());
    CHECK(received(*pair.coordinator, pair.agent->seal("text")) == "text");
  }
  CHECK(plain.empty());
}

TEST_CASE(
    "a record that is changed, repeated, left out, of another direction or in clear ends it") {
  const auto refuses = [](auto change) {
    Pair pair;
    REQUIRE(pair.connect());
    const std::string first = pair.agent->seal("first");
    const std::string second = pair.agent->seal("second");
    const std::string plain = received(*pair.coordinator, change(pair, first, second));
    CAPTURE(plain);
    CHECK(plain.ends_with("!"));
    CHECK((plain == "!" || plain == "first!"));
    CHECK(received(*pair.coordinator, second) == "!");  // for good
  };
  const std::size_t bytes = [] {
    Pair pair;
    REQUIRE(pair.connect());
    return pair.agent->seal("first").size();
  }();
  for (std::size_t at = 0; at < bytes; ++at) {
    if (at == 3) continue;  // a record of 4 KB more, which is waited for; see the next case
    CAPTURE(at);
    refuses([&](Pair&, const std::string& first, const std::string& second) {
      return flipped(first, at) + second;
    });
  }
  refuses([](Pair&, const std::string& first, const std::string&) { return first + first; });
  refuses(
      [](Pair&, const std::string& first, const std::string& second) { return second + first; });
  refuses([](Pair& pair, const std::string&, const std::string&) {
    return pair.coordinator->seal("reflected");
  });
  refuses([](Pair&, const std::string& first, const std::string&) {
    return first + std::string("DDPR\0\0\0\x02{}", 10);
  });
  refuses([](Pair&, const std::string& first, const std::string&) {
    return first + std::string("\x17\x03\x03\x48\x01", 5);  // more than a record may have
  });
}

TEST_CASE("bytes that are not TLS 1.3 with the secret are refused, and the answer is an alert") {
  Pair pair;
  const Owned<SSL_CTX> older(::SSL_CTX_new(::TLS_client_method()));
  SSL_CTX_set_max_proto_version(older.get(), TLS1_2_VERSION);
  const Owned<SSL_CTX> without_key(::SSL_CTX_new(::TLS_client_method()));
  std::vector<std::string> hellos{pair.agent->take_output() + "DDPR and more",
                                  "GET / HTTP/1.0\r\n\r\n", std::string("\x16\x03\x03\x48\x01", 5),
                                  std::string(16, '\0')};
  for (SSL_CTX* context : {older.get(), without_key.get()}) {
    const Owned<SSL> session(::SSL_new(context));
    BIO* const out = ::BIO_new(::BIO_s_mem());
    ::SSL_set_bio(session.get(), ::BIO_new(::BIO_s_mem()), out);
    ::SSL_set_connect_state(session.get());
    (void)::SSL_do_handshake(session.get());
    char* data = nullptr;
    const long size = BIO_get_mem_data(out, &data);
    hellos.emplace_back(data, static_cast<std::size_t>(size));
  }
  for (const std::string& hello : hellos) {
    Pair other;
    CHECK(received(*other.coordinator, hello) == "!");
    CHECK_FALSE(other.coordinator->is_established());
    CHECK(other.coordinator->take_output().size() < 1'000);
  }
}

TEST_CASE("a session of megabytes in both directions holds no more than it has to send") {
  Pair pair;
  REQUIRE(pair.connect());
  const std::string piece(64 * 1024, 'p');
  for (int count = 0; count < 64; ++count) {
    REQUIRE(received(*pair.coordinator, pair.agent->seal(piece)) == piece);
    REQUIRE(pair.coordinator->take_output().empty());
  }
}

TEST_CASE("a secret is in no memory that a core dump contains, before and after a session") {
  const SharedSecret secret = random_secret();
  CHECK_FALSE(is_dumped(secret->text()));
  Pair pair(secret, secret);
  CHECK_FALSE(is_dumped(secret->text()));
  REQUIRE(pair.connect());
  CHECK_FALSE(is_dumped(secret->text()));
  const std::string control = "control " + std::to_string(::getpid());
  CHECK(is_dumped(control));  // the search finds what is there
}
