// Secrets for tests.
#pragma once

#include <string.h>
#include <sys/random.h>

#include <array>
#include <memory>
#include <string>

#include "base/secret.hpp"
#include "tests/support/catch.hpp"

namespace ddprun::test {

/// 40 times this letter.
inline SharedSecret secret_of(char letter) {
  auto secret = std::make_shared<Secret>();
  secret->append(std::string(40, letter));
  return secret;
}

/// One of which there is no other copy.
inline SharedSecret random_secret() {
  auto secret = std::make_shared<Secret>();
  std::array<char, 48> bytes{};
  REQUIRE(::getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  secret->append({bytes.data(), bytes.size()});
  ::explicit_bzero(bytes.data(), bytes.size());
  return secret;
}

}  // namespace ddprun::test
