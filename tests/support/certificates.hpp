// A CA for tests: it signs what the test asks for, as PEM files in a folder of its own.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "base/certificates.hpp"
#include "tests/support/catch.hpp"

namespace ddprun::test {

/// A certificate as the test wants it. Times are seconds from now.
struct Wanted {
  std::string names = "IP:127.0.0.1,DNS:localhost";  // subjectAltName; empty: none
  long from = -3600;
  long until = 3600;
  std::string purposes{};  // extendedKeyUsage; empty: any
};

class TestCa {
 public:
  explicit TestCa(const std::string& name = "test CA") {
    std::string folder = std::filesystem::temp_directory_path() / "ddprun_ca_XXXXXX";
    REQUIRE(::mkdtemp(folder.data()) != nullptr);
    folder_ = folder;
    certificate_ = made(name, key_.get(), Wanted{""}, "critical,CA:TRUE");
    write(folder_ + "/ca.pem", certificate_.get(), nullptr);
  }
  ~TestCa() { std::filesystem::remove_all(folder_); }
  TestCa(const TestCa&) = delete;
  TestCa& operator=(const TestCa&) = delete;

  /// A certificate and its key, and this CA to believe.
  [[nodiscard]] Certificates issue(const Wanted& wanted = {}) {
    const std::string stem = folder_ + "/" + std::to_string(++issued_);
    const Key key(::EVP_EC_gen("P-256"));
    const auto certificate = made("127.0.0.1", key.get(), wanted, "critical,CA:FALSE");
    write(stem + ".pem", certificate.get(), nullptr);
    write(stem + ".key", nullptr, key.get());
    return {named(stem + ".pem"), named(stem + ".key"), ca()};
  }
  [[nodiscard]] PemFile ca() const { return named(folder_ + "/ca.pem"); }
  /// A file of this folder with any content, mode 0600.
  [[nodiscard]] PemFile file(const std::string& name, const std::string& content) const {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << content;
    REQUIRE(::chmod(path.c_str(), 0600) == 0);
    return named(path);
  }

 private:
  struct Free {
    void operator()(EVP_PKEY* key) const { ::EVP_PKEY_free(key); }
    void operator()(X509* certificate) const { ::X509_free(certificate); }
  };
  using Key = std::unique_ptr<EVP_PKEY, Free>;
  using Signed = std::unique_ptr<X509, Free>;

  static PemFile named(const std::string& path) { return {path, "--file=" + path}; }

  static void extend(X509* certificate, int kind, const std::string& value) {
    if (value.empty()) return;
    X509_EXTENSION* const made = ::X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str());
    REQUIRE(made != nullptr);
    REQUIRE(::X509_add_ext(certificate, made, -1) == 1);
    ::X509_EXTENSION_free(made);
  }

  Signed made(const std::string& subject, EVP_PKEY* key, const Wanted& wanted,
              const std::string& constraints) {
    Signed certificate(::X509_new());
    X509* const raw = certificate.get();
    ::X509_set_version(raw, 2);
    ::ASN1_INTEGER_set(::X509_get_serialNumber(raw), issued_ + 1);
    ::X509_gmtime_adj(X509_getm_notBefore(raw), wanted.from);
    ::X509_gmtime_adj(X509_getm_notAfter(raw), wanted.until);
    ::X509_set_pubkey(raw, key);
    const auto* const text = reinterpret_cast<const unsigned char*>(subject.c_str());
    X509_NAME* const name = ::X509_get_subject_name(raw);
    REQUIRE(::X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, text, -1, -1, 0) == 1);
    ::X509_set_issuer_name(raw, ::X509_get_subject_name(certificate_ ? certificate_.get() : raw));
    extend(raw, NID_basic_constraints, constraints);
    extend(raw, NID_subject_alt_name, wanted.names);
    extend(raw, NID_ext_key_usage, wanted.purposes);
    REQUIRE(::X509_sign(raw, key_.get(), ::EVP_sha256()) > 0);
    return certificate;
  }

  static void write(const std::string& path, X509* certificate, EVP_PKEY* key) {
    FILE* const file = std::fopen(path.c_str(), "w");
    REQUIRE(file != nullptr);
    REQUIRE(::chmod(path.c_str(), 0600) == 0);
    if (certificate != nullptr) REQUIRE(::PEM_write_X509(file, certificate) == 1);
    if (key != nullptr) {
      REQUIRE(::PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr) == 1);
    }
    REQUIRE(std::fclose(file) == 0);
  }

  std::string folder_;
  long issued_ = 0;
  Key key_{::EVP_EC_gen("P-256")};
  Signed certificate_;
};

}  // namespace ddprun::test
