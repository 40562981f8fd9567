// TlsSession: one side of a TLS 1.3 session between two owners of the same secret. It has no
// socket: received bytes go in, bytes to send come out. The key of a session comes from the secret
// and the name of the run (HKDF-SHA256) and from a fresh Diffie-Hellman exchange, so what was
// recorded stays unreadable when the secret becomes known later. There are no certificates,
// tickets, early data, renegotiation or older versions, and there is one cipher suite: nothing to
// choose, nothing to downgrade. Both sides have proved that they know the secret when
// is_established().
//
// Thread rule: one thread. Ownership: a session keeps its context. Errors: one for good; the
// session is of no use after it.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/secret.hpp"

struct bio_st;
struct ssl_ctx_st;
struct ssl_session_st;
struct ssl_st;

namespace ddprun::net {

/// A secret, and how sessions use it. For both sides.
class TlsContext {
 public:
  /// Fails with kSystem where OpenSSL cannot be loaded.
  [[nodiscard]] static Result<std::shared_ptr<const TlsContext>> make(SharedSecret secret);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

 private:
  friend class TlsSession;
  explicit TlsContext(SharedSecret secret);
  /// OpenSSL's form of the key for `run`; null if it is out of memory.
  [[nodiscard]] ssl_session_st* key_for(ssl_st* session, std::string_view run) const;

  SharedSecret secret_;
  ssl_ctx_st* context_;
};
using SharedTlsContext = std::shared_ptr<const TlsContext>;

class TlsSession {
 public:
  /// The side that connects; `run` is sent in clear. The first message is in take_output().
  [[nodiscard]] static std::unique_ptr<TlsSession> connecting(SharedTlsContext context,
                                                              std::string run);
  /// The side that accepts.
  [[nodiscard]] static std::unique_ptr<TlsSession> accepting(SharedTlsContext context);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  /// Takes received bytes and appends what they contain to `plain`; after an error nothing of that
  /// counts. After any call something may have to be sent, an alert too: see take_output(). The
  /// error's sentence is the cause, for a log.
  [[nodiscard]] Result<void> receive(std::string_view sealed, std::string& plain);
  /// The bytes to send for these. Only when is_established() and after no error.
  [[nodiscard]] std::string seal(std::string_view plain);
  [[nodiscard]] std::string take_output();
  /// The other side is an owner of the secret.
  [[nodiscard]] bool is_established() const { return established_; }
  /// The run whose key the other side has proved.
  [[nodiscard]] const std::string& run() const { return run_; }

 private:
  struct Callbacks;
  friend class TlsContext;
  TlsSession(SharedTlsContext context, std::string run);
  [[nodiscard]] Error failure(int result) const;

  SharedTlsContext context_;
  std::string run_;
  std::string_view input_;  // during receive()
  std::string output_;
  bool established_ = false;
  ssl_st* session_;
};

/// A fatal alert in clear text: what a server sends that has no secret.
inline constexpr std::string_view kTlsRefusal{"\x15\x03\x03\x00\x02\x02\x28", 7};

}  // namespace ddprun::net
