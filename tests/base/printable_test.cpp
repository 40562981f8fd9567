// Foreign text can neither forge a line nor change how one looks.
#include "base/printable.hpp"

#include <random>

#include "tests/support/catch.hpp"

using ddprun::printable;

TEST_CASE("visible text is unchanged, tabs too") {
  for (const std::string text :
       {"", "gpu-03", "caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80", "a\tb", "back\\slash \"quoted\"",
        "\xE2\x80\xA7", "\xE2\x81\xA5", "\xE2\x81\xAA", "\xC2\xA0"}) {
    CHECK(printable(text) == text);
  }
}

TEST_CASE("line ends, escapes and other controls become visible") {
  using namespace std::string_literals;
  CHECK(printable("a\nddprun: done") == "a\\nddprun: done");
  CHECK(printable("\r\x1b[2K\a\x7f") == "\\r\\x1b[2K\\x07\\x7f");
  CHECK(printable("a\0b"s) == "a\\x00b");
  CHECK(printable("\xC2\x85|\xC2\x9B") == "\\u0085|\\u009b");  // C1: next line, control sequence
  CHECK(printable("\xE2\x80\xA8|\xE2\x80\xA9") == "\\u2028|\\u2029");
}

TEST_CASE("marks of writing direction become visible") {
  CHECK(printable("\xD8\x9C|\xE2\x80\x8E|\xE2\x80\x8F") == "\\u061c|\\u200e|\\u200f");
  CHECK(printable("\xE2\x80\xAA|\xE2\x80\xAE") == "\\u202a|\\u202e");
  CHECK(printable("\xE2\x81\xA6|\xE2\x81\xA9") == "\\u2066|\\u2069");
}

TEST_CASE("bytes that are not UTF-8 are replaced") {
  const std::string mark(ddprun::kReplacement);
  CHECK(printable("\x80 \xC0\xAF \xED\xA0\x80 \xE2\x82") ==
        mark + " " + mark + mark + " " + mark + mark + mark + " " + mark + mark);
}

TEST_CASE("any bytes become one line of visible UTF-8, which is unchanged if converted again") {
  std::mt19937 random(20);  // NOLINT: the same texts in each run
  for (int i = 0; i < 2000; ++i) {
    std::string text(random() % 40, ' ');
    for (char& c : text) {
      // Half of the bytes are parts of characters that must be replaced.
      constexpr std::string_view kWild = "\n\r\x1b\x7f\xC2\x85\xE2\x80\x81\xA6\xA8\xAE\xD8\x9C\\";
      c = random() % 2 == 0 ? kWild[random() % kWild.size()] : static_cast<char>(random() % 256);
    }
    const std::string line = printable(text);
    CAPTURE(text, line);
    CHECK(printable(line) == line);
    CHECK(line.find_first_of("\n\r\x1b\x7f") == std::string::npos);
    CHECK(ddprun::clean_utf8(line, line.size()) == line);
  }
}
