// What a command line, a variable or a list came to: accepted, or refused with one sentence.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "tests/support/catch.hpp"

namespace ddprun::test {

using Words = std::vector<std::string>;

/// The value of what must be accepted.
template <class T>
[[nodiscard]] T value_of(Result<T> result) {
  if (!result) FAIL("refused: " << result.error().sentence);
  return std::move(*result);
}

/// The error of what must be refused as a wrong use: exit code 2, one line.
template <class T>
[[nodiscard]] Error error_of(const Result<T>& result) {
  if (result) FAIL("accepted, but should have been refused");
  CHECK(exit_code_of(result.error().kind) == 2);
  CHECK(result.error().sentence.find('\n') == std::string::npos);
  return result.error();
}

}  // namespace ddprun::test
