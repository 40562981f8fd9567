#include "base/format.hpp"

#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace std::chrono_literals;

TEST_CASE("a duration is shown with the two figures that matter, in one form everywhere") {
  CHECK(duration_text(300us) == "0 ms");
  CHECK(duration_text(999ms) == "999 ms");
  CHECK(duration_text(1449ms) == "1.4 s");
  CHECK(duration_text(2040ms) == "2.0 s");
  CHECK(duration_text(13s + 700ms) == "14 s");
  CHECK(duration_text(67s) == "1 min 7 s");
  CHECK(duration_text(59min + 59s) == "59 min 59 s");
  CHECK(duration_text(3h + 12min + 50s) == "3 h 13 min");
}

TEST_CASE("a duration is rounded to the nearest figure, into the next unit where it reaches that") {
  CHECK(duration_text(600us) == "1 ms");
  CHECK(duration_text(999ms + 600us) == "1 s");
  CHECK(duration_text(1793ms) == "1.8 s");
  CHECK(duration_text(9s + 949ms) == "9.9 s");
  CHECK(duration_text(9s + 950ms) == "10 s");
  CHECK(duration_text(59s + 499ms) == "59 s");
  CHECK(duration_text(59s + 500ms) == "1 min");
  CHECK(duration_text(59min + 59s + 600ms) == "1 h");
  CHECK(duration_text(23h + 59min + 40s) == "24 h");
}

TEST_CASE("a duration in whole units is shown in them") {
  CHECK(duration_text(0s) == "0 s");
  CHECK(duration_text(5s) == "5 s");
  CHECK(duration_text(30s) == "30 s");
  CHECK(duration_text(5min) == "5 min");
  CHECK(duration_text(2h) == "2 h");
}

TEST_CASE("seconds as an option takes them are exact") {
  CHECK(seconds_text(90s) == "90");
  CHECK(seconds_text(250ms) == "0.25");
  CHECK(seconds_text(2050ms) == "2.05");
}
