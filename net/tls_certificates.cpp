#include "net/tls_certificates.hpp"

#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/address.hpp"
#include "base/printable.hpp"
#include "base/private_file.hpp"
#include "net/openssl.hpp"

namespace ddprun::net {

namespace {

constexpr int kPem = SSL_FILETYPE_PEM;

const OpenSsl& library() {
  return *openssl();
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
  if (library().SSL_CTX_use_certificate_chain_file(context, own.cert.path.c_str()) != 1) {
    return refuse_pem(own.cert, "it has no certificate in PEM form (-----BEGIN CERTIFICATE-----)");
  }
  library().SSL_CTX_set_default_passwd_cb(context, no_passphrase);
  library().ERR_clear_error();
  const bool read = library().SSL_CTX_use_PrivateKey_file(context, key.path.c_str(), kPem) == 1 &&
                    library().SSL_CTX_check_private_key(context) == 1;
  if (read) return {};
  const unsigned long why = library().ERR_peek_error();
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
             library().X509_verify_cert_error_string(verdict);
  }
}

}  // namespace

Result<void> load_certificates(ssl_ctx_st* context, const Certificates& own) {
  if (!own.cert.path.empty()) {
    auto loaded = load_own(context, own);
    if (!loaded) return loaded;
  }
  if (own.ca.path.empty()) {
    (void)library().SSL_CTX_set_default_verify_paths(context);  // without any it believes no one
    return {};
  }
  auto good = check_pem(own.ca, Holds::kCertificates);
  if (!good) return good;
  if (library().SSL_CTX_load_verify_file(context, own.ca.path.c_str()) == 1) return {};
  return refuse_pem(own.ca, "it has no CA certificate in PEM form (-----BEGIN CERTIFICATE-----)");
}

bool expect_host(ssl_st* session, const std::string& host) {
  // A host that is no name would be no condition.
  const bool usable = !host.empty() && host.find('\0') == std::string::npos;
  library().SSL_set_hostflags(
      session, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return library().SSL_set1_host(session, usable ? host.c_str() : "?") == 1;
}

void name_host(ssl_st* session, std::string host) {
  if (ipv4_of(host) || ipv6_of(host)) return;
  (void)library().SSL_ctrl(session, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                           host.data());
}

std::optional<std::string> certificate_failure(ssl_st* session, unsigned long why,
                                               const Certificates& own, const std::string& host) {
  const long verdict = library().SSL_get_verify_result(session);
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

}  // namespace ddprun::net
