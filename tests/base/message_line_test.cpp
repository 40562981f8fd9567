// The form of ddprun's own messages.
#include "base/message_line.hpp"

#include "tests/support/catch.hpp"

using namespace ddprun;

TEST_CASE("a message names its severity and its code, if it has one") {
  CHECK(note_line("RUN", "text") == "ddprun: note [RUN] text");
  CHECK(warning_line("", "text") == "ddprun: warning: text");
  CHECK(error_line("EXEC", "text") == "ddprun: error [EXEC] text");
}

TEST_CASE("foreign text in a message forges no line") {
  CHECK(error_line("RUN", "a\nddprun: done\x1b[2J") ==
        "ddprun: error [RUN] a\\nddprun: done\\x1b[2J");
}
