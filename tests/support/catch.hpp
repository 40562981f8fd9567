// Includes Catch2. Always include this header: versions 2 (Debian 12) and 3 (Debian 13) have
// different headers.
#pragma once

#define CATCH_CONFIG_FAST_COMPILE  // assertions without a try block each: a quarter less code
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
using Catch::Matchers::ContainsSubstring;
#else
#include <catch2/catch.hpp>
inline auto ContainsSubstring(const std::string& text) {
  return Catch::Matchers::Contains(text);
}
#endif
