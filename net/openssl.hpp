// OpenSsl: the functions of OpenSSL that a session needs, found when the first one is made. A run
// without TLS loads nothing and starts as fast as without this file; one with a secret or
// certificates uses the system's OpenSSL with the system's security updates. Thread rule: one
// thread.
#pragma once

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/kdf.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/result.hpp"

namespace ddprun::net {

// clang-format off
#define DDPRUN_LIBCRYPTO(use) \
  use(BIO_clear_flags) use(BIO_get_data) use(BIO_meth_new) use(BIO_meth_set_ctrl)              \
  use(BIO_meth_set_read) use(BIO_meth_set_write) use(BIO_new) use(BIO_set_data)                \
  use(BIO_set_flags) use(BIO_set_init) use(ERR_clear_error) use(ERR_peek_error)                \
  use(ERR_reason_error_string) use(EVP_KDF_CTX_free) use(EVP_KDF_CTX_new) use(EVP_KDF_derive)  \
  use(EVP_KDF_fetch) use(EVP_KDF_free) use(EVP_PKEY_get_base_id) use(EVP_PKEY_get_bits)        \
  use(X509_check_ip_asc) use(X509_verify_cert_error_string)
#define DDPRUN_LIBSSL(use) \
  use(OPENSSL_init_ssl) use(SSL_CIPHER_find) use(SSL_CTX_check_private_key) use(SSL_CTX_ctrl)  \
  use(SSL_CTX_free) use(SSL_CTX_get0_privatekey) use(SSL_CTX_load_verify_file)             \
  use(SSL_CTX_new) use(SSL_CTX_set_ciphersuites) use(SSL_CTX_set_default_passwd_cb)            \
  use(SSL_CTX_set_default_verify_paths) use(SSL_CTX_set_num_tickets) use(SSL_CTX_set_options)  \
  use(SSL_CTX_set_psk_find_session_callback) use(SSL_CTX_set_psk_use_session_callback)         \
  use(SSL_CTX_use_PrivateKey_file) use(SSL_CTX_use_certificate_chain_file)                     \
  use(SSL_SESSION_free) use(SSL_SESSION_new) use(SSL_SESSION_set1_master_key)                  \
  use(SSL_SESSION_set_cipher) use(SSL_SESSION_set_protocol_version) use(SSL_ctrl)              \
  use(SSL_do_handshake) use(SSL_free) use(SSL_get0_peer_certificate) use(SSL_get_error)        \
  use(SSL_get_ex_data) use(SSL_get_verify_result) use(SSL_is_init_finished) use(SSL_new)       \
  use(SSL_read_ex) use(SSL_session_reused) use(SSL_set1_host) use(SSL_set_accept_state)        \
  use(SSL_set_bio) use(SSL_set_connect_state) use(SSL_set_ex_data) use(SSL_set_hostflags)      \
  use(SSL_set_verify) use(SSL_write_ex) use(TLS_method)
// clang-format on

struct OpenSsl {
// NOLINTNEXTLINE(bugprone-macro-parentheses): it declares a member of this name
#define DDPRUN_MEMBER(function) decltype(&::function) function = nullptr;
  DDPRUN_LIBCRYPTO(DDPRUN_MEMBER)
  DDPRUN_LIBSSL(DDPRUN_MEMBER)
#undef DDPRUN_MEMBER
};

/// Loads the libraries at the first call; they stay loaded. Fails with kSystem and what to install.
[[nodiscard]] const Result<OpenSsl>& openssl();

}  // namespace ddprun::net
