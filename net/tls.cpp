#include "net/tls.hpp"

#include <openssl/core_names.h>
#include <openssl/params.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <new>
#include <utility>

#include "base/address.hpp"
#include "base/assert.hpp"
#include "base/limits.hpp"
#include "base/printable.hpp"
#include "base/secret.hpp"
#include "net/openssl.hpp"

namespace ddprun::net {

namespace {

constexpr const char* kSuite = "TLS_AES_128_GCM_SHA256";
constexpr std::array<unsigned char, 2> kSuiteNumber{0x13, 0x01};
constexpr const char* kGroups = "X25519:P-256";
constexpr std::size_t kKeyBytes = 32;
// Bound to this protocol and its version: a secret that is used elsewhere, too, has other keys
// there.
constexpr std::string_view kLabel = "ddprun link 1, TLS 1.3 external PSK, run ";
constexpr const char* kDigest = "SHA256";
constexpr std::size_t kPieceBytes = 16 * 1024;  // the largest record

const OpenSsl& ssl() {
  return *openssl();
}

OSSL_PARAM parameter(const char* name, unsigned type, std::string_view value) {
  return {name, type, const_cast<char*>(value.data()), value.size(), OSSL_PARAM_UNMODIFIED};
}

bool derive(std::string_view secret, std::string_view run,
            std::array<unsigned char, kKeyBytes>& key) {
  EVP_KDF* const algorithm = ssl().EVP_KDF_fetch(nullptr, "HKDF", nullptr);
  EVP_KDF_CTX* const context = algorithm == nullptr ? nullptr : ssl().EVP_KDF_CTX_new(algorithm);
  const std::string info = std::string(kLabel) + std::string(run);
  const std::array<OSSL_PARAM, 4> parameters{
      parameter(OSSL_KDF_PARAM_DIGEST, OSSL_PARAM_UTF8_STRING, kDigest),
      parameter(OSSL_KDF_PARAM_KEY, OSSL_PARAM_OCTET_STRING, secret),
      parameter(OSSL_KDF_PARAM_INFO, OSSL_PARAM_OCTET_STRING, info), OSSL_PARAM{}};
  const bool derived = context != nullptr && ssl().EVP_KDF_derive(context, key.data(), key.size(),
                                                                  parameters.data()) == 1;
  ssl().EVP_KDF_CTX_free(context);
  ssl().EVP_KDF_free(algorithm);
  return derived;
}

Error refuse_pem(const PemFile& file, const std::string& why) {
  return {ErrorKind::kUsage, printable(file.shown) + ": " + why};
}

enum class Holds { kCertificates, kKey };

Result<void> check_pem(const PemFile& file, Holds what) {
  struct stat status = {};
  if (::stat(file.path.c_str(), &status) != 0 || ::access(file.path.c_str(), R_OK) != 0) {
    return refuse_pem(file, std::string("cannot read it: ") + std::strerror(errno));
  }
  if (!S_ISREG(status.st_mode)) return refuse_pem(file, "it is not a regular file");
  return what == Holds::kKey ? refuse_exposed(status, file.shown, "key") : Result<void>();
}

/// OpenSSL would ask on the terminal.
int no_passphrase(char* /*text*/, int /*size*/, int /*rwflag*/, void* /*data*/) {
  return 0;
}

Result<void> load_own(SSL_CTX* context, const Certificates& own) {
  const PemFile& key = own.key.path.empty() ? own.cert : own.key;
  auto good = check_pem(own.cert, Holds::kCertificates);
  if (good) good = check_pem(key, Holds::kKey);
  if (!good) return good;
  if (ssl().SSL_CTX_use_certificate_chain_file(context, own.cert.path.c_str()) != 1) {
    return refuse_pem(own.cert, "it has no certificate in PEM form (-----BEGIN CERTIFICATE-----)");
  }
  ssl().SSL_CTX_set_default_passwd_cb(context, no_passphrase);
  ssl().ERR_clear_error();
  const bool read =
      ssl().SSL_CTX_use_PrivateKey_file(context, key.path.c_str(), SSL_FILETYPE_PEM) == 1 &&
      ssl().SSL_CTX_check_private_key(context) == 1;
  if (read) return {};
  const unsigned long why = ssl().ERR_peek_error();
  const bool other = ERR_GET_LIB(why) == ERR_LIB_X509 || ERR_GET_LIB(why) == ERR_LIB_SSL;
  if (other) return refuse_pem(key, "it is not the key of the certificate in " + own.cert.path);
  return refuse_pem(key,
                    "it has no private key in PEM form without a passphrase; openssl pkey -in FILE "
                    "-out KEY writes one");
}

std::string words_of_alert(int reason) {
  switch (reason) {
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
      return "bad certificate";
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
      return "a certificate for another purpose";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
      return "revoked";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
      return "expired";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
      return "unknown certificate";
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
      return "unknown CA";
    case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
      return "it is not signed by the CA of that name";
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
      return "access denied";
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
      return "none was sent";
    default:
      return "";
  }
}

std::string distrust(long verdict, const Certificates& own, const std::string& host) {
  switch (verdict) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return "its certificate does not name " + host +
             " (subjectAltName), the host that was to be reached";
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return "its certificate is not signed by " +
             (own.ca.path.empty() ? "a CA of this system" : "the CA of " + printable(own.ca.shown));
    case X509_V_ERR_INVALID_PURPOSE:
      return "its certificate is not for this purpose; extendedKeyUsage needs " +
             std::string(host.empty() ? "clientAuth" : "serverAuth");
    default:
      return std::string("its certificate is refused: ") +
             ssl().X509_verify_cert_error_string(verdict);
  }
}

/// Reads the files into `context`. Fails with kUsage; the sentence names the file, what is wrong
/// and what to try. Without `own.ca` the system's are believed.
Result<void> load_certificates(ssl_ctx_st* context, const Certificates& own) {
  if (!own.cert.path.empty()) {
    if (auto loaded = load_own(context, own); !loaded) return loaded;
  }
  if (own.ca.path.empty()) {
    (void)ssl().SSL_CTX_set_default_verify_paths(context);  // without any it believes no one
    return {};
  }
  if (auto good = check_pem(own.ca, Holds::kCertificates); !good) return good;
  if (ssl().SSL_CTX_load_verify_file(context, own.ca.path.c_str()) == 1) return {};
  return refuse_pem(own.ca, "it has no CA certificate in PEM form (-----BEGIN CERTIFICATE-----)");
}

/// Makes `session` accept a server that names `host`, a name or an address literal, and no other.
bool expect_host(ssl_st* session, const std::string& host) {
  // A host that is no name would be no condition.
  const bool usable = !host.empty() && host.find('\0') == std::string::npos;
  ssl().SSL_set_hostflags(
      session, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return ssl().SSL_set1_host(session, usable ? host.c_str() : "?") == 1;
}

/// Says the name to the server, in clear, which may have several. An address is no name.
void name_host(ssl_st* session, std::string host) {
  if (ipv4_of(host) || ipv6_of(host)) return;
  (void)ssl().SSL_ctrl(session, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                       host.data());
}

/// What is wrong about the certificate of one side, if that has ended `session`. `why`: OpenSSL's
/// error. `host`: empty on the side that accepts.
std::optional<std::string> certificate_failure(ssl_st* session, unsigned long why,
                                               const Certificates& own, const std::string& host) {
  const long verdict = ssl().SSL_get_verify_result(session);
  if (verdict != X509_V_OK) return distrust(verdict, own, host);
  if (ERR_GET_LIB(why) != ERR_LIB_SSL) return std::nullopt;
  const int reason = ERR_GET_REASON(why);
  if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE) return "it has no certificate";
  if (reason == SSL_R_WRONG_VERSION_NUMBER) return "it does not speak TLS";
  if (reason == SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE) {
    return "it refuses the handshake, as a server without a certificate does";
  }
  const std::string words = words_of_alert(reason);
  if (words.empty()) return std::nullopt;
  if (own.cert.path.empty()) return "it wants a certificate, and none is given";
  return "it refuses the certificate in " + printable(own.cert.path) + ": " + words;
}

}  // namespace

/// What OpenSSL calls. The session is the data of its BIO, and ex_data 0 of its SSL.
struct TlsSession::Callbacks {
  static int read(BIO* bio, char* bytes, int size) {
    auto& session = *static_cast<TlsSession*>(ssl().BIO_get_data(bio));
    ssl().BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
    if (session.input_.empty()) {
      ssl().BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY);
      return -1;
    }
    const std::size_t count = session.input_.copy(bytes, static_cast<std::size_t>(size));
    session.input_.remove_prefix(count);
    return static_cast<int>(count);
  }
  static int write(BIO* bio, const char* bytes, int size) {
    auto& session = *static_cast<TlsSession*>(ssl().BIO_get_data(bio));
    session.output_.append(bytes, static_cast<std::size_t>(size));
    return size;
  }
  static long control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

  static BIO_METHOD* method() {
    static BIO_METHOD* const made = [] {
      BIO_METHOD* const method = ssl().BIO_meth_new(BIO_TYPE_SOURCE_SINK, "ddprun");
      if (method == nullptr) throw std::bad_alloc();
      ssl().BIO_meth_set_read(method, read);
      ssl().BIO_meth_set_write(method, write);
      ssl().BIO_meth_set_ctrl(method, control);
      return method;
    }();
    return made;
  }

  /// A run that is not known has a key all the same, so the answer tells nothing about it.
  static int find_key(SSL* of, const unsigned char* name, std::size_t size, SSL_SESSION** key) {
    auto& session = *static_cast<TlsSession*>(ssl().SSL_get_ex_data(of, 0));
    *key = nullptr;
    if (size == 0 || size > kNameBytesMax) return 1;
    session.run_.assign(reinterpret_cast<const char*>(name), size);
    *key = session.context_->key_for(of, session.run_);
    return *key == nullptr ? 0 : 1;
  }
  static int use_key(SSL* of, const EVP_MD*, const unsigned char** name, std::size_t* size,
                     SSL_SESSION** key) {
    auto& session = *static_cast<TlsSession*>(ssl().SSL_get_ex_data(of, 0));
    *name = reinterpret_cast<const unsigned char*>(session.run_.data());
    *size = session.run_.size();
    *key = session.context_->key_for(of, session.run_);
    return *key == nullptr ? 0 : 1;
  }
};

TlsContext::Made TlsContext::make(SharedSecret secret) {
  const auto& loaded = openssl();
  if (!loaded) return loaded.error();
  SharedTlsContext made(new TlsContext(std::move(secret), {}, Peers::kLinks));
  ssl().SSL_CTX_set_psk_find_session_callback(made->context_, TlsSession::Callbacks::find_key);
  ssl().SSL_CTX_set_psk_use_session_callback(made->context_, TlsSession::Callbacks::use_key);
  return made;
}

TlsContext::Made TlsContext::make(const Certificates& own) {
  DDPRUN_ASSERT(!own.cert.path.empty() && !own.ca.path.empty());
  return make(own, Peers::kLinks);
}

TlsContext::Made TlsContext::make_client(const Certificates& own) {
  return make(own, Peers::kServers);
}

TlsContext::Made TlsContext::make(const Certificates& own, Peers peers) {
  const auto& loaded = openssl();
  if (!loaded) return loaded.error();
  SharedTlsContext made(new TlsContext(nullptr, own, peers));
  if (auto read = load_certificates(made->context_, own); !read) return read.error();
  return made;
}

int TlsContext::rsa_bits() const {
  EVP_PKEY* const key = ssl().SSL_CTX_get0_privatekey(context_);
  const bool is_rsa = key != nullptr && ssl().EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA;
  return is_rsa ? ssl().EVP_PKEY_get_bits(key) : 0;
}

TlsContext::TlsContext(SharedSecret secret, Certificates own, Peers peers)
    : secret_(std::move(secret)),
      own_(std::move(own)),
      peers_(peers),
      context_(ssl().SSL_CTX_new(ssl().TLS_method())) {
  if (context_ == nullptr) throw std::bad_alloc();
  const auto control = [this](int command, long number, const char* text = nullptr) {
    return ssl().SSL_CTX_ctrl(context_, command, number, const_cast<char*>(text)) != 0;
  };
  const bool links = peers_ == Peers::kLinks;
  const long oldest = links ? TLS1_3_VERSION : TLS1_2_VERSION;
  bool good = control(SSL_CTRL_SET_MIN_PROTO_VERSION, oldest);
  good = good && control(SSL_CTRL_SET_MAX_PROTO_VERSION, TLS1_3_VERSION);
  if (links) {
    good = good && control(SSL_CTRL_SET_GROUPS_LIST, 0, kGroups);
    good = good && ssl().SSL_CTX_set_ciphersuites(context_, kSuite) == 1;
    good = good && ssl().SSL_CTX_set_num_tickets(context_, 0) == 1;
  }
  DDPRUN_ASSERT(good);
  (void)control(SSL_CTRL_SET_MAX_CERT_LIST, kCertificateBytesMax);
  (void)control(SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF);
  (void)control(SSL_CTRL_MODE, SSL_MODE_RELEASE_BUFFERS);  // an idle session has none
  (void)ssl().SSL_CTX_set_options(context_, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
}

TlsContext::~TlsContext() {
  ssl().SSL_CTX_free(context_);
}

ssl_session_st* TlsContext::key_for(ssl_st* session, std::string_view run) const {
  std::array<unsigned char, kKeyBytes> key{};
  SSL_SESSION* made = ssl().SSL_SESSION_new();
  const SSL_CIPHER* const suite = ssl().SSL_CIPHER_find(session, kSuiteNumber.data());
  const bool good = made != nullptr && suite != nullptr && derive(secret_->text(), run, key) &&
                    ssl().SSL_SESSION_set1_master_key(made, key.data(), key.size()) == 1 &&
                    ssl().SSL_SESSION_set_cipher(made, suite) == 1 &&
                    ssl().SSL_SESSION_set_protocol_version(made, TLS1_3_VERSION) == 1;
  ::explicit_bzero(key.data(), key.size());
  if (good) return made;
  ssl().SSL_SESSION_free(made);
  return nullptr;
}

TlsSession::TlsSession(SharedTlsContext context, std::string name, Side side)
    : context_(std::move(context)),
      run_(context_->has_secret() ? name : ""),
      host_(context_->has_secret() ? "" : name),
      side_(side),
      session_(ssl().SSL_new(context_->context_)) {
  BIO* const bio = session_ == nullptr ? nullptr : ssl().BIO_new(Callbacks::method());
  if (bio == nullptr) {
    ssl().SSL_free(session_);
    throw std::bad_alloc();
  }
  ssl().BIO_set_data(bio, this);
  ssl().BIO_set_init(bio, 1);
  ssl().SSL_set_bio(session_, bio, bio);
  (void)ssl().SSL_set_ex_data(session_, 0, this);
}

TlsSession::~TlsSession() {
  ssl().SSL_free(session_);
}

std::unique_ptr<TlsSession> TlsSession::connecting(SharedTlsContext context, std::string name) {
  std::unique_ptr<TlsSession> session(
      new TlsSession(std::move(context), std::move(name), Side::kConnects));
  SSL* const with = session->session_;
  ssl().SSL_set_connect_state(with);
  // With a secret, too: without this it would accept any certificate in its place.
  ssl().SSL_set_verify(with, SSL_VERIFY_PEER, nullptr);
  if (!session->context_->has_secret()) {
    if (!expect_host(with, session->host_)) throw std::bad_alloc();
    if (session->context_->peers_ == TlsContext::Peers::kServers) name_host(with, session->host_);
  }
  ssl().ERR_clear_error();
  (void)ssl().SSL_do_handshake(with);  // ends where it waits for the answer
  return session;
}

std::unique_ptr<TlsSession> TlsSession::accepting(SharedTlsContext context) {
  std::unique_ptr<TlsSession> session(new TlsSession(std::move(context), "", Side::kAccepts));
  ssl().SSL_set_accept_state(session->session_);
  if (!session->context_->has_secret()) {
    ssl().SSL_set_verify(session->session_, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                         nullptr);
  }
  return session;
}

/// A handshake without the proof cannot succeed here; this is the second lock on that door.
bool TlsSession::is_proved() const {
  if (context_->has_secret()) return ssl().SSL_session_reused(session_) == 1;
  return ssl().SSL_get0_peer_certificate(session_) != nullptr &&
         ssl().SSL_get_verify_result(session_) == X509_V_OK;
}

bool TlsSession::peer_names(const std::string& address) const {
  X509* const certificate = ssl().SSL_get0_peer_certificate(session_);
  return certificate != nullptr && ssl().X509_check_ip_asc(certificate, address.c_str(), 0) == 1;
}

Result<void> TlsSession::receive(std::string_view sealed, std::string& plain) {
  input_ = sealed;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): SSL_read_ex() fills it
  std::array<char, kPieceBytes> piece;
  ssl().ERR_clear_error();
  while (true) {
    std::size_t count = 0;
    const int result = ssl().SSL_read_ex(session_, piece.data(), piece.size(), &count);
    if (!established_ && ssl().SSL_is_init_finished(session_) == 1) {
      if (!is_proved()) {
        input_ = {};
        return Error(ErrorKind::kUsage, "TLS: a handshake without the proof");
      }
      established_ = true;
      accepted_ = context_->has_secret() || side_ == Side::kAccepts;
    }
    if (result == 1) {
      accepted_ = true;
      plain.append(piece.data(), count);
      continue;
    }
    input_ = {};
    if (ssl().SSL_get_error(session_, result) == SSL_ERROR_WANT_READ) return {};
    return failure(result);
  }
}

Error TlsSession::failure(int result) {
  if (ssl().SSL_get_error(session_, result) == SSL_ERROR_ZERO_RETURN) {
    ended_ = true;
    return {ErrorKind::kUsage, "TLS: the peer ended the session"};
  }
  const unsigned long why = ssl().ERR_peek_error();
  if (!established_ && ERR_GET_REASON(why) == SSL_R_BINDER_DOES_NOT_VERIFY) {
    return {ErrorKind::kUsage, "TLS: the peer has another secret"};
  }
  if (!context_->has_secret()) {
    const auto words = certificate_failure(session_, why, context_->own_, host_);
    if (words) return {ErrorKind::kUsage, "TLS: " + *words};
  }
  const char* const reason = ssl().ERR_reason_error_string(why);
  return {ErrorKind::kUsage, "TLS: " + std::string(reason == nullptr ? "failure" : reason)};
}

std::string TlsSession::seal(std::string_view plain) {
  DDPRUN_ASSERT(established_);
  std::size_t count = 0;
  ssl().ERR_clear_error();
  const int result = ssl().SSL_write_ex(session_, plain.data(), plain.size(), &count);
  // Nothing blocks; what is left is a lack of memory.
  if (result != 1 || count != plain.size()) throw std::bad_alloc();
  return take_output();
}

TlsContext::Made make_link_tls(const SharedSecret& secret,
                               const std::optional<Certificates>& certificates) {
  DDPRUN_ASSERT(secret == nullptr || !certificates);
  if (certificates) return TlsContext::make(*certificates);
  if (secret != nullptr) return TlsContext::make(secret);
  return SharedTlsContext();
}

}  // namespace ddprun::net
