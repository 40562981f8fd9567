#include "base/printable.hpp"

#include <string>

#include "tests/support/catch.hpp"

using ddprun::escape_size;
using ddprun::without_colours;

TEST_CASE("an escape sequence of a terminal ends where its form says") {
  for (const std::string sequence : {"\x1b[1;35m", "\x1b[2J", "\x1b(B", "\x1b]8;;http://x/y\x1b\\",
                                     "\x1b]0;title\a", "\x1bP1$r0m\x1b\\",
                                     "\x1b"
                                     "7"}) {
    CHECK(escape_size(sequence + "text") == sequence.size());
  }
  for (const std::string cut : {"\x1b", "\x1b[", "\x1b[1;3", "\x1b]8;;http", "\x1b("}) {
    CHECK(escape_size(cut) == cut.size());
  }
}

TEST_CASE("text without colours keeps every other sequence") {
  CHECK(without_colours("\x1b[1;35mValueError\x1b[0m: \x1b[35mboom\x1b[m\n") ==
        "ValueError: boom\n");
  CHECK(without_colours("\x1b[2J\x1b]0;x\addprun: error") == "\x1b[2J\x1b]0;x\addprun: error");
  CHECK(without_colours("plain \xc3\xa4\x1b[3") == "plain \xc3\xa4\x1b[3");
}
