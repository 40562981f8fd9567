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
