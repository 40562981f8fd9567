// The line on a terminal about what is waited for.
#include "agent/output/wait_line.hpp"

#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace std::chrono_literals;

namespace {

const TimePoint kSince = TimePoint(1000s);

}  // namespace

TEST_CASE("a wait counts the seconds since its beginning, and says when it ends") {
  CHECK(wait_text(NodesWait{1, 2, 2, kSince, kSince + 90s}, kSince + 12900ms) ==
        "waiting for 1 of 2 nodes, 12 s of 1 min 30 s");
  CHECK(wait_text(NodesWait{0, 1, 1, kSince}, kSince + 2s) == "waiting for 1 of 1 node, 2 s");
  CHECK(wait_text(GpuWait{kSince, kSince + 10s}, kSince + 3s).ends_with(" freed, 3 s of 10 s"));
}

TEST_CASE("a stop counts down to SIGKILL") {
  const StopWait stop{3, 8, kSince + 30s};
  CHECK(wait_text(stop, kSince + 8s) == "stopping 3 of 8 ranks, SIGKILL in 22 s");
  CHECK(wait_text(stop, kSince + 29700ms) == "stopping 3 of 8 ranks, SIGKILL in 1 s");
  CHECK(wait_text(stop, kSince + 30s) == "stopping 3 of 8 ranks, SIGKILL sent");
  CHECK(wait_text(StopWait{0, 8, kSince + 30s}, kSince).empty());
}

TEST_CASE("a line is drawn after a second, then at each full one") {
  CHECK(next_drawing(kSince, kSince) == kSince + 1s);
  CHECK(next_drawing(kSince, kSince + 999ms) == kSince + 1s);
  CHECK(next_drawing(kSince, kSince + 1s) == kSince + 2s);
  CHECK(next_drawing(kSince, kSince + 5300ms) == kSince + 6s);
}

TEST_CASE("a line is cut before the last column, and is not drawn where the width is unknown") {
  CHECK(cut_to_window("waiting", 80) == "waiting");
  CHECK(cut_to_window("waiting", 8) == "waiting");
  CHECK(cut_to_window("waiting", 7) == "waitin");
  CHECK(cut_to_window("waiting", 1).empty());
  CHECK(cut_to_window("waiting", 0).empty());
  CHECK(cut_to_window("für 機械-01", 3) == "f\xc3\xbc");
  CHECK(cut_to_window("für 機械-01", 6) == "für ");  // and not a part of the next character
  CHECK(cut_to_window("für 機械-01", 7) == "für 機");
  CHECK(cut_to_window("für 機械-01", 80) == "für 機械-01");
}
