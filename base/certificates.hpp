// Certificates: the PEM files with which one side of a TLS session says who it is, and knows whom
// to believe. Plain data: nothing is read here.
#pragma once

#include <string>

namespace ddprun {

struct PemFile {
  std::string path;   // empty: none
  std::string shown;  // for sentences, with its option: "--rdzv-tls-cert=node.pem"
};

struct Certificates {
  PemFile cert;  // this side's own, then those that lead to the CA
  PemFile key;   // of `cert`; no path: it is in the same file
  PemFile ca;    // what it accepts from others is signed by one of these
};

}  // namespace ddprun
