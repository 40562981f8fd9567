#include "agent/output/tail.hpp"

#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace std::chrono_literals;

namespace {

constexpr TimePoint kStart{100s};

/// `count` lines, one every 300 ms.
WriteTimes line_by_line(int count) {
  WriteTimes times;
  for (int line = 0; line < count; ++line) times.add(kStart + line * 300ms, "line\n");
  return times;
}

}  // namespace

TEST_CASE(
    "a stream that is written line by line for a second is live, one that is kept back is not") {
  CHECK(line_by_line(5).is_live());
  CHECK_FALSE(line_by_line(4).is_live());
  WriteTimes at_once;
  for (int line = 0; line < 100; ++line) at_once.add(kStart + 5s, "line\n");
  CHECK_FALSE(at_once.is_live());
  WriteTimes in_blocks;
  for (int block = 0; block < 20; ++block) in_blocks.add(kStart + block * 1s, "li");
  in_blocks.add(kStart + 30s, "last\n");
  CHECK_FALSE(in_blocks.is_live());
}

TEST_CASE("two streams are set in the order in which they were written") {
  WriteTimes out;
  out.add(kStart, "step 1\n");
  out.add(kStart + 1s, "step 2\n");
  out.add(kStart + 3s, "step 3\n");
  WriteTimes err;
  err.add(kStart + 2s, "warning");
  CHECK(WriteTimes::merged({"step 1\nstep 2\nstep 3\n", out}, {"warning", err}) ==
        "step 1\nstep 2\nwarning\nstep 3\n");
  // The order of what was written before that is not known.
  CHECK(WriteTimes::merged({"old\nstep 1\nstep 2\nstep 3\n", out}, {"older\nwarning", err}) ==
        "old\nolder\nstep 1\nstep 2\nwarning\nstep 3\n");
  // A tail has only the last bytes.
  CHECK(WriteTimes::merged({"p 2\nstep 3\n", out}, {"ing", err}) == "p 2\ning\nstep 3\n");
}

TEST_CASE("the memory of write times is bounded") {
  WriteTimes many = line_by_line(10'000);
  const std::string tail(5 * 10'000, '\n');
  CHECK(WriteTimes::merged({tail, many}, {"", WriteTimes()}) == tail);
}
