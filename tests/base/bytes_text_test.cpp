#include "base/format.hpp"

#include <limits>

#include "tests/support/catch.hpp"

using namespace ddprun;

TEST_CASE("a size is shown in the unit that leaves at most four figures") {
  constexpr std::int64_t kKiB = 1024;
  CHECK(bytes_text(0) == "0 B");
  CHECK(bytes_text(1023) == "1023 B");
  CHECK(bytes_text(kKiB) == "1 KiB");
  CHECK(bytes_text(kKiB * kKiB - 1) == "1023 KiB");
  CHECK(bytes_text(64 * kKiB * kKiB) == "64 MiB");
  CHECK(bytes_text(480 * kKiB * kKiB * kKiB - 200 * kKiB * kKiB) == "479.8 GiB");
  CHECK(bytes_text(kKiB + kKiB / 2) == "1.5 KiB");
  CHECK(bytes_text(std::numeric_limits<std::int64_t>::max()) == "7.9 EiB");
}
