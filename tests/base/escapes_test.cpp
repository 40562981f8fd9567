#include "base/escapes.hpp"

#include <string>

#include "tests/support/catch.hpp"

using ddprun::escape_size;
using ddprun::without_escapes;

TEST_CASE("escape sequences of terminals are left out of text, whatever their form") {
  CHECK(without_escapes("\x1b[1;35mValueError\x1b[0m: \x1b[35mboom\x1b[0m\n") ==
        "ValueError: boom\n");
  CHECK(without_escapes("\x1b[1mbold\x1b(B\x1b[m") == "bold");  // tput sgr0
  CHECK(without_escapes("\x1b]8;;http://x/y\x1b\\link\x1b]8;;\x1b\\ after") == "link after");
  CHECK(without_escapes("\x1b]0;title\atext") == "text");
  CHECK(without_escapes("\x1b"
                        "7saved\x1b"
                        "8") == "saved");
  CHECK(without_escapes("plain \xc3\xa4") == "plain \xc3\xa4");
}

TEST_CASE("an escape sequence that is cut off ends with the text") {
  for (const std::string cut : {"\x1b", "\x1b[", "\x1b[1;3", "\x1b]8;;http", "\x1b("}) {
    CHECK(escape_size(cut) == cut.size());
    CHECK(without_escapes("a" + cut) == "a");
  }
}
