// The rule for who failed first, on one node and over all nodes.
#include "base/worker_exit.hpp"

#include <signal.h>

#include "tests/support/catch.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;
using namespace ddprun::test;
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

TEST_CASE(
    "the line that tells why a worker ended is its exception, not what libraries print last") {
  const auto told = [](std::vector<std::string> lines) {
    WorkerExit exit;
    exit.lines = std::move(lines);
    return telling_line(exit);
  };
  const std::string heading = "Traceback (most recent call last):";
  const std::string frame = "  File \"train.py\", line 3, in <module>";
  CHECK(told({heading, frame, "KeyError: 'label'", "",
              "Set the environment variable HYDRA_FULL_ERROR=1 "
              "for a complete stack trace."}) == "KeyError: 'label'");
  CHECK(told({heading, frame, "KeyError: 'label'", "wandb: Find logs at: ./wandb/run-123/logs"}) ==
        "KeyError: 'label'");
  CHECK(told({"[rank1]: " + heading, "[rank1]:     main()",
              "[rank1]: OSError: [Errno 5] Input/output error",
              "[rank1]:[W1130 02:31:11.123456789 ProcessGroupNCCL.cpp:1553] Warning: WARNING: "
              "destroy_process_group() was not called before program exit"}) ==
        "OSError: [Errno 5] Input/output error");
  CHECK(told({heading, frame, "RuntimeError: CUDA error: unspecified launch failure",
              "For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
              "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions."}) ==
        "RuntimeError: CUDA error: unspecified launch failure");
  CHECK(told({"FATAL: dataset checksum mismatch", "wandb: run finished, syncing 3 files"}) ==
        "FATAL: dataset checksum mismatch");
  CHECK(told({heading, frame, "KeyError: 'a'", "Exception ignored in: <function W.__del__ at 0x7f>",
              heading, "  File \"train.py\", line 4, in __del__", "OSError: no space"}) ==
        "KeyError: 'a'");
  CHECK(told({heading, frame, "KeyError: 'a'", "", kDirectCause, "", heading, frame,
              "RuntimeError: step failed"}) == "KeyError: 'a'");
  CHECK(told({heading, frame, "KeyError: 'a'", "", kDuringHandling, "", heading, frame,
              "RuntimeError: no model"}) == "RuntimeError: no model");
  CHECK(told({"double free or corruption (!prev)", "Fatal Python error: Aborted", "",
              "Extension modules: numpy (total: 1)"}) == "double free or corruption (!prev)");
  CHECK(told({"step 5", "Fatal Python error: Segmentation fault", "",
              "Extension modules: numpy (total: 1)"}) == "Fatal Python error: Segmentation fault");
  CHECK(told({"terminate called after throwing an instance of 'E'", "  what():  bad"}) ==
        "  what():  bad");
  CHECK(told({"wandb: only this"}) == "wandb: only this");
  CHECK(told({}).empty());
}

TEST_CASE("failures are alike with the same status and telling line, but for the numbers in it") {
  const ExitStatus other = ExitStatus::exited(2);
  CHECK(is_alike(kFailed, "rank 0: no GPU 0", kFailed, "rank 12: no GPU 4"));
  CHECK_FALSE(is_alike(kFailed, "rank 0: no GPU 0", other, "rank 0: no GPU 0"));
  CHECK_FALSE(is_alike(kFailed, "rank 0: no GPU 0", kFailed, "rank 0: no CPU 0"));
  CHECK_FALSE(is_alike(kFailed, "step 1", kFailed, "step"));
  CHECK(is_alike(kFailed, "<object at 0x7f68ab>", kFailed, "<object at 0x7fa123>"));
  CHECK_FALSE(is_alike(kFailed, "", kFailed, ""));  // nothing is known of either
}
