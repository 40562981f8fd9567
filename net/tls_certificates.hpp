// What a TLS session with certificates needs beside tls.cpp: the files, and in words why one side
// does not believe the other. Thread rule: one thread. OpenSSL has been loaded.
#pragma once

#include <optional>
#include <string>

#include "base/certificates.hpp"
#include "base/result.hpp"

struct ssl_ctx_st;
struct ssl_st;

namespace ddprun::net {

/// Reads the files into `context`. Fails with kUsage; the sentence names the file, what is wrong
/// and what to try. Without `own.ca` the system's are believed.
[[nodiscard]] Result<void> load_certificates(ssl_ctx_st* context, const Certificates& own);

/// Makes `session` accept a server that names `host`, a name or an address literal, and no other.
[[nodiscard]] bool expect_host(ssl_st* session, const std::string& host);
/// Says the name to the server, in clear, which may have several. An address is no name.
void name_host(ssl_st* session, std::string host);

/// What is wrong about the certificate of one side, if that has ended `session`. `why`: OpenSSL's
/// error. `host`: empty on the side that accepts.
[[nodiscard]] std::optional<std::string> certificate_failure(ssl_st* session, unsigned long why,
                                                             const Certificates& own,
                                                             const std::string& host);

}  // namespace ddprun::net
