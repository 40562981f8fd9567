// Before a restart the GPUs of the round before are waited for, here those of a library that plays
// NVML. The worker tells that library who holds them.
#include <signal.h>

#include <chrono>
#include <filesystem>

#include "agent/watch/device_release.hpp"
#include "tests/agent/agent_run.hpp"
#include "tests/agent/said.hpp"

using namespace ddprun;
using namespace ddprun::test;

namespace {

const std::string kReleased = R"("state":"released")";

/// A run of one worker, which fails in its first round with this in the file of the holders.
class Restart {
 public:
  explicit Restart(const std::string& holders, Environment changes = {})
      : Restart(holders, std::move(changes), "exit 0") {}
  Restart(const std::string& holders, Environment changes, const std::string& second)
      : run_(start(1,
                   "[ $DDPRUN_ROUND = 2 ] && { echo > $DIR/second; " + second + "; }; echo \"" +
                       holders + "\" > $FAKE_NVML_HOLDERS; exit 3",
                   {"restarts=1", "log=" + directory_.file("logs")}, with(std::move(changes)))) {}

  [[nodiscard]] Command& run() { return run_; }
  /// The event, "" without one.
  [[nodiscard]] std::string event() const {
    for (const std::string& entry : logs()) {
      const std::string events = content(directory_.file("logs/" + entry + "/events.jsonl"));
      const auto at = events.find(R"("event":"gpu_release")");
      if (at != std::string::npos) return events.substr(at, events.find('\n', at) - at);
    }
    return {};
  }
  [[nodiscard]] bool second_round_began() const { return exists(directory_.file("second")); }
  [[nodiscard]] std::string file(const std::string& name) const { return directory_.file(name); }

 private:
  [[nodiscard]] std::vector<std::string> logs() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(directory_.file("logs"))) {
      found.push_back(entry.path().filename());
    }
    return found;
  }
  [[nodiscard]] Environment with(Environment changes) const {
    changes.insert({{"DIR", directory_.path()},
                    {"FAKE_NVML_HOLDERS", directory_.file("holders")},
                    {"DDPRUN_NVML", FAKE_NVML}});
    return changes;
  }

  TemporaryDirectory directory_;
  Command run_;
};

}  // namespace

TEST_CASE("GPUs that are released when their worker has ended delay no restart, and no line") {
  Restart restart("0 $$$$ 1000 0");
  CHECK(restart.run().wait() == ExitStatus::exited(0));
  CHECK_THAT(restart.event(), ContainsSubstring(kReleased));
  CHECK(count(restart.run().err(), "[GPU]") == 0);
}

TEST_CASE("a restart waits until the driver no longer lists the worker before it") {
  Restart restart("0 $$$$ 1000 3");
  CHECK(restart.run().wait() == ExitStatus::exited(0));
  CHECK_THAT(restart.event(), ContainsSubstring(kReleased));
  CHECK_THAT(restart.event(), !ContainsSubstring("\"waited_ms\":0,"));
  CHECK(count(restart.run().err(), "[GPU]") == 0);
}

TEST_CASE("a GPU that is never released is named, and the restart continues") {
  // So that the end of the wait comes while the driver is asked.
  Restart restart("0 $$$$ 76880000000 1000000", {{"FAKE_NVML_ANSWER_MS", "250"}});
  CHECK(restart.run().wait() == ExitStatus::exited(0));
  CHECK_THAT(restart.run().err(), ContainsSubstring("note [GPU] waiting up to 10 s"));
  CHECK_THAT(restart.run().err(), ContainsSubstring("warning [GPU] not released after "));
  CHECK_THAT(restart.run().err(),
             ContainsSubstring("(rank 0 of round 1, which has ended, 71.6 GiB); "
                               "starting round 2 anyway\n"));
  CHECK_THAT(restart.event(), ContainsSubstring(R"("state":"held")"));
}

TEST_CASE("a driver that hangs delays a restart for a limited time, and the end not at all") {
  Restart restart("hang");
  CHECK(restart.run().wait() == ExitStatus::exited(0));
  CHECK_THAT(restart.run().err(),
             ContainsSubstring("warning [GPU] the driver did not say within "));
  CHECK_THAT(restart.event(), ContainsSubstring(R"("state":"no_answer")"));
}

TEST_CASE("a stop does not wait for GPUs that are held, nor for a driver that hangs") {
  for (const char* holders : {"0 $$$$ 1000 1000000", "hang"}) {
    Restart restart(holders);
    REQUIRE(restart.run().says("round 2"));
    const auto stopped = std::chrono::steady_clock::now();
    restart.run().signal(SIGTERM);
    CHECK(restart.run().wait() == ExitStatus::exited(128 + SIGTERM));
    CHECK(std::chrono::steady_clock::now() - stopped < std::chrono::seconds(5));
    CHECK_FALSE(restart.second_round_began());
    CHECK(count(restart.run().err(), "anyway") == 0);
  }
}

TEST_CASE("a process that is not of this run is named once, and not waited for") {
  DeviceHolder stranger;
  stranger.pid = ::getpid();
  stranger.name = "this test";
  const std::string pid = std::to_string(stranger.pid);
  Restart restart("0 " + pid + " 2147483648 1000000");
  CHECK(restart.run().wait() == ExitStatus::exited(0));
  CHECK_THAT(restart.run().err(), ContainsSubstring(up_to(" (", gpu_strangers_line({stranger}))));
  CHECK_THAT(restart.run().err(), ContainsSubstring(", 2 GiB)\n"));
  CHECK_THAT(restart.event(), ContainsSubstring(kReleased));
}

TEST_CASE("a GPU that the driver has lost is named before a restart") {
  Restart restart("0 $$$$ 1000 0", {{"FAKE_NVML_LOST", "1"}});
  CHECK(restart.run().wait() == ExitStatus::exited(0));
  CHECK(count(restart.run().err(), gpu_lost_line(1) + "\n") == 1);
}

TEST_CASE("what a GPU does that no worker may use is of no interest, unless a worker used it") {
  const std::string pid = std::to_string(::getpid());
  Restart restart("0 " + pid + " 1000 1000000", {{"CUDA_VISIBLE_DEVICES", "GPU-fake2"}});
  CHECK(restart.run().wait() == ExitStatus::exited(0));
  CHECK(count(restart.run().err(), "[GPU]") == 0);
  Restart other_order("0 $$$$ 1000 3", {{"CUDA_VISIBLE_DEVICES", "GPU-fake2"}});
  CHECK(other_order.run().wait() == ExitStatus::exited(0));
  CHECK_THAT(other_order.event(), !ContainsSubstring("\"waited_ms\":0,"));
}

TEST_CASE("without a driver, and with all GPUs hidden, nothing is asked before a restart") {
  for (const Environment& changes :
       {Environment{{"DDPRUN_NVML", "/no/such/library.so"}}, Environment{{"DDPRUN_NVML", ""}},
        Environment{{"FAKE_NVML_FAILS", "1"}}, Environment{{"CUDA_VISIBLE_DEVICES", ""}}}) {
    Restart restart("0 $$$$ 1000 1000000", changes);
    CHECK(restart.run().wait() == ExitStatus::exited(0));
    CHECK(restart.event() == "");
    CHECK(count(restart.run().err(), "[GPU]") == 0);
  }
}
