#include "base/printable.hpp"

#include "tests/support/catch.hpp"

using ddprun::clean_utf8;

TEST_CASE("valid text of every length of character is unchanged") {
  const std::string text = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80";
  CHECK(clean_utf8(text, 100) == text);
}

TEST_CASE("every byte that is not part of a character is replaced") {
  const std::string mark = "\xEF\xBF\xBD";
  CHECK(clean_utf8("\x80", 100) == mark);                                   // a lone continuation
  CHECK(clean_utf8("\xC0\xAF", 100) == mark + mark);                        // overlong
  CHECK(clean_utf8("\xED\xA0\x80", 100) == mark + mark + mark);             // a surrogate
  CHECK(clean_utf8("\xE2\x82", 100) == mark + mark);                        // cut short
  CHECK(clean_utf8("\xF4\x90\x80\x80", 100) == mark + mark + mark + mark);  // above U+10FFFF
}

TEST_CASE("long text is cut between characters and marked") {
  CHECK(clean_utf8("abcdefgh", 8) == "abcdefgh");
  CHECK(clean_utf8("abcdefghi", 8) == "abcde\xE2\x80\xA6");
  CHECK(clean_utf8("\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC", 8) == "\xE2\x82\xAC\xE2\x80\xA6");
}
