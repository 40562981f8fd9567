// The form of ddprun's own messages.
#include "base/message_line.hpp"

#include "base/program_name.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;

TEST_CASE("a message names its severity and its code, if it has one") {
  CHECK(note_line("RUN", "text") == "ddprun: note [RUN] text");
  CHECK(warning_line("", "text") == "ddprun: warning: text");
  CHECK(error_line("EXEC", "text") == "ddprun: error [EXEC] text");
}

TEST_CASE(
    "a message begins with the name that the program was called by, if it is one of its own") {
  set_program_name("torchrun");
  CHECK(error_line("EXEC", "text") == "torchrun: error [EXEC] text");
  set_program_name("something else");
  CHECK(program_name() == "torchrun");
  set_program_name("ddprun");
  CHECK(error_line("EXEC", "text") == "ddprun: error [EXEC] text");
}

TEST_CASE("an error of a ddprun is known by its beginning under every name") {
  CHECK(own_error_prefix("ddprun: error [EXEC] x") == 8);
  CHECK(own_error_prefix("torchrun: error [EXEC] x") == 10);
  CHECK(own_error_prefix("ddprun-launch: error [EXEC] x") == 15);
  for (const char* other :
       {"", "ddprun", "ddprun: note [RUN] x", "mpirun: error [x", " ddprun: error ["}) {
    CHECK(own_error_prefix(other) == 0);
  }
}

TEST_CASE("foreign text in a message forges no line") {
  CHECK(error_line("RUN", "a\nddprun: done\x1b[2J") ==
        "ddprun: error [RUN] a\\nddprun: done\\x1b[2J");
}
