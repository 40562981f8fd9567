// TlsSession: one side of a TLS session. It has no socket: received bytes go in, bytes to send come
// out. There are no tickets, early data or renegotiation, and nothing to downgrade. Both sides of a
// link have proved who they are when is_established(): that they know the secret of the run, or
// that a common CA has signed their certificates.
//
// With a secret the key of a session comes from the secret and the name of the run (HKDF-SHA256)
// and from a fresh Diffie-Hellman exchange, so what was recorded stays unreadable when the secret
// becomes known later; with certificates it comes from that exchange alone. Links are TLS 1.3 with
// one cipher suite.
//
// A login inside a link in clear would leave every later frame open to change. OpenSSL is loaded
// with dlopen when a run uses TLS: linked statically it would leave its security updates to us,
// linked dynamically it would slow every start.
//
// Thread rule: one thread. Ownership: a session keeps its context. Errors: one for good; the
// session is of no use after it.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/certificates.hpp"
#include "base/result.hpp"
#include "base/secret.hpp"

struct bio_st;
struct ssl_ctx_st;
struct ssl_session_st;
struct ssl_st;

namespace ddprun::net {

/// What a session proves itself with, and whom it believes.
class TlsContext {
 public:
  using Made = Result<std::shared_ptr<const TlsContext>>;

  /// Of links between owners of the secret, for both sides. Fails with kSystem where OpenSSL cannot
  /// be loaded.
  [[nodiscard]] static Made make(SharedSecret secret);
  /// Of links between owners of certificates, for both sides: each needs one, and its CA. Fails
  /// with kUsage, too, where a file cannot be used.
  [[nodiscard]] static Made make(const Certificates& own);
  /// Of a client of other servers: TLS 1.2 or newer; it may have no certificate, and without a CA
  /// believes those of the system.
  [[nodiscard]] static Made make_client(const Certificates& own);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  [[nodiscard]] bool has_secret() const { return secret_ != nullptr; }
  /// Of the own key, if that is an RSA key; else 0.
  [[nodiscard]] int rsa_bits() const;

 private:
  friend class TlsSession;
  enum class Peers { kLinks, kServers };
  TlsContext(SharedSecret secret, Certificates own, Peers peers);
  [[nodiscard]] static Made make(const Certificates& own, Peers peers);
  /// OpenSSL's form of the key for `run`; null if it is out of memory.
  [[nodiscard]] ssl_session_st* key_for(ssl_st* session, std::string_view run) const;

  SharedSecret secret_;  // null: certificates
  Certificates own_;
  Peers peers_;
  ssl_ctx_st* context_;
};
using SharedTlsContext = std::shared_ptr<const TlsContext>;

class TlsSession {
 public:
  /// The side that connects. `name`: with a secret the run, which is sent in clear; with
  /// certificates the host, which the server's has to name. The first message is in take_output().
  [[nodiscard]] static std::unique_ptr<TlsSession> connecting(SharedTlsContext context,
                                                              std::string name);
  /// The side that accepts.
  [[nodiscard]] static std::unique_ptr<TlsSession> accepting(SharedTlsContext context);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  /// Takes received bytes and appends what they contain to `plain`; after an error nothing of that
  /// counts, unless has_ended(). After any call something may have to be sent, an alert too: see
  /// take_output(). The error's sentence is the cause, for a log.
  [[nodiscard]] Result<void> receive(std::string_view sealed, std::string& plain);
  /// The bytes to send for these. Only when is_established() and after no error.
  [[nodiscard]] std::string seal(std::string_view plain);
  [[nodiscard]] std::string take_output() { return std::exchange(output_, {}); }
  /// The other side has proved who it is.
  [[nodiscard]] bool is_established() const { return established_; }
  /// And it believes this side: a server looks at a client's certificate last, so until it has said
  /// something it may still refuse it.
  [[nodiscard]] bool is_accepted() const { return accepted_; }
  /// The error was the proper end of the session.
  [[nodiscard]] bool has_ended() const { return ended_; }
  [[nodiscard]] bool has_secret() const { return context_->has_secret(); }
  /// Whether the other side's certificate names this address, a literal. With a secret there is
  /// none.
  [[nodiscard]] bool peer_names(const std::string& address) const;
  /// The run whose key the other side has proved; empty with certificates.
  [[nodiscard]] const std::string& run() const { return run_; }

 private:
  enum class Side { kConnects, kAccepts };
  struct Callbacks;
  friend class TlsContext;
  TlsSession(SharedTlsContext context, std::string name, Side side);
  [[nodiscard]] bool is_proved() const;
  [[nodiscard]] Error failure(int result);

  SharedTlsContext context_;
  std::string run_;
  std::string host_;
  const Side side_;
  std::string_view input_;  // during receive()
  std::string output_;
  bool established_ = false;
  bool accepted_ = false;
  bool ended_ = false;
  ssl_st* session_;
};

/// Of the links of a run: null where neither is there.
[[nodiscard]] TlsContext::Made make_link_tls(const SharedSecret& secret,
                                             const std::optional<Certificates>& certificates);

/// The certificates of one side, which the other holds before it believes them.
inline constexpr long kCertificateBytesMax = 32 * 1024;

/// A fatal alert in clear text: what a server sends that has neither secret nor certificate.
inline constexpr std::string_view kTlsRefusal{"\x15\x03\x03\x00\x02\x02\x28", 7};

}  // namespace ddprun::net
