// The rule for who failed first, on one node and over all nodes.
#include "base/worker_exit.hpp"

#include <signal.h>

#include "tests/support/catch.hpp"

using namespace ddprun;
using std::chrono::seconds;

namespace {

const TimePoint kThen{seconds(100)};
const ExitStatus kFailed = ExitStatus::exited(1);

}  // namespace

TEST_CASE("the first exit that is neither a success nor ordered by ddprun is the first failure") {
  CHECK(is_first_failure({kThen, kFailed}, std::nullopt));
  CHECK(is_first_failure({kThen, ExitStatus::signaled(SIGKILL)}, std::nullopt));
  CHECK_FALSE(is_first_failure({kThen, ExitStatus::exited(0)}, std::nullopt));
}

TEST_CASE("a rank that ddprun stopped is never a cause, however it ended") {
  for (const auto& status : {ExitStatus::exited(1), ExitStatus::signaled(SIGTERM),
                             ExitStatus::signaled(SIGKILL), ExitStatus::exited(0)}) {
    CHECK_FALSE(is_first_failure({kThen, status, SIGTERM}, std::nullopt));
  }
}

TEST_CASE("an earlier failure that is learned later replaces the first one, a later one does not") {
  CHECK(is_first_failure({kThen - seconds(1), kFailed}, kThen));
  CHECK_FALSE(is_first_failure({kThen + seconds(1), kFailed}, kThen));
  CHECK_FALSE(is_first_failure({kThen, kFailed}, kThen));  // at the same time: learned first
}

TEST_CASE("failures are alike with the same status and last line, but for the numbers in it") {
  const ExitStatus other = ExitStatus::exited(2);
  CHECK(is_alike(kFailed, "rank 0: no GPU 0", kFailed, "rank 12: no GPU 4"));
  CHECK_FALSE(is_alike(kFailed, "rank 0: no GPU 0", other, "rank 0: no GPU 0"));
  CHECK_FALSE(is_alike(kFailed, "rank 0: no GPU 0", kFailed, "rank 0: no CPU 0"));
  CHECK_FALSE(is_alike(kFailed, "step 1", kFailed, "step"));
  CHECK_FALSE(is_alike(kFailed, "", kFailed, ""));  // nothing is known of either
}
