// What a round waits for before it starts, and what is said of it.
#include "agent/watch/device_release.hpp"

#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace std::chrono_literals;
using Kind = DeviceHolder::Kind;

namespace {

DeviceHolder holder(int gpu, int pid, Kind kind) {
  DeviceHolder its;
  its.gpu = gpu;
  its.pid = pid;
  its.kind = kind;
  its.name = "python";
  its.user = "me";
  its.round = Round(1);
  its.rank = Rank(3);
  return its;
}

}  // namespace

TEST_CASE("a round waits for what is of this run or has ended, and not for strangers") {
  for (const Kind kind : {Kind::kWorker, Kind::kLeft, Kind::kEnded}) {
    CHECK(waited_for({holder(0, 1, kind)}, kDeviceReleaseMax).size() == 1);
  }
  CHECK(waited_for({holder(0, 1, Kind::kStranger)}, 0s).empty());
  CHECK(strangers_among({holder(0, 1, Kind::kStranger)}, 0s).size() == 1);
}

TEST_CASE("a process that may be of another PID namespace is waited for a second") {
  const DeviceHolders hidden{holder(0, 1, Kind::kHidden)};
  CHECK(waited_for(hidden, 999ms).size() == 1);
  CHECK(waited_for(hidden, 1s).empty());
  CHECK(strangers_among(hidden, 999ms).empty());
  CHECK(strangers_among(hidden, 1s).size() == 1);
}

TEST_CASE("what holds a GPU is named with its pid, who it is, and its memory") {
  DeviceHolder worker = holder(2, 4182, Kind::kWorker);
  worker.bytes = 76880000000ULL;
  CHECK(gpu_held_line({worker}, 10s, Round(2)) ==
        "ddprun: warning [GPU] not released after 10 s: GPU 2: pid 4182 (rank 3 of round 1, which "
        "has ended, 71.6 GiB); starting round 2 anyway");
  CHECK(holders_text({holder(0, 7, Kind::kLeft)}) ==
        "GPU 0: pid 7 (python, started by a worker of this run)");
  CHECK(holders_text({holder(0, 7, Kind::kEnded), holder(1, 8, Kind::kHidden)}) ==
        "GPU 0: pid 7 (has ended); GPU 1: pid 8 (not in this PID namespace)");
  CHECK(gpu_strangers_line({holder(0, 9, Kind::kStranger)}) ==
        "ddprun: note [GPU] also in use outside this run: GPU 0: pid 9 (python, user me)");
}

TEST_CASE("a lost GPU is a warning, with what to do") {
  CHECK(gpu_lost_line(1).starts_with(
      "ddprun: warning [GPU] GPU 1 is lost: the driver cannot reach it any more\n  likely "));
}

TEST_CASE("a name with control characters forges no line, and many holders fill one line") {
  DeviceHolder hostile = holder(0, 1, Kind::kStranger);
  hostile.name = "x)\nddprun: error";
  CHECK(gpu_strangers_line({hostile}).find('\n') == std::string::npos);
  const DeviceHolders many(100, holder(0, 1, Kind::kStranger));
  CHECK(holders_text(many).size() < 400);
  CHECK_THAT(holders_text(many), ContainsSubstring("; 96 more"));
}
