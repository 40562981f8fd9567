// The table of ranks at the start.
#include "agent/config/plan.hpp"

#include "tests/support/catch.hpp"

using namespace ddprun;

namespace {

Placed worker(int rank, const std::string& device, const std::string& log = "") {
  return {Rank(rank), device, "", "4", log};
}

}  // namespace

TEST_CASE("the table has a line for each rank, without empty columns") {
  CHECK(placement_table("gpu-01", {worker(8, "GPU 2", "/logs/0/stderr.log"),
                                   worker(9, "MIG-4f", "/logs/1/stderr.log")}) ==
        "rank  host    device  threads  log\n"
        "8     gpu-01  GPU 2   4        /logs/0/stderr.log\n"
        "9     gpu-01  MIG-4f  4        /logs/1/stderr.log");
}

TEST_CASE("ranks in a row that have the same share a line of the table") {
  CHECK(placement_table("a", {worker(0, ""), worker(1, ""), worker(2, ""), worker(3, "GPU 1")}) ==
        "rank  host  device  threads\n"
        "0-2   a             4\n"
        "3     a     GPU 1   4");
}

TEST_CASE("without anything that was chosen there is no table") {
  CHECK(placement_table("a", {{Rank(0)}, {Rank(1)}}).empty());
}

TEST_CASE("a long table ends with the number of further ranks") {
  std::vector<Placed> workers;
  for (int rank = 0; rank < static_cast<int>(kPlacementLinesMax) + 2; ++rank) {
    workers.push_back(worker(rank, "GPU " + std::to_string(rank)));
  }
  CHECK(placement_table("a", workers).ends_with("GPU 15  4\n(2 ranks more)"));
  workers.resize(kPlacementLinesMax);
  CHECK(placement_table("a", workers).ends_with("GPU 15  4"));
}

TEST_CASE("a rank's place is what its plan and the launch give it") {
  LaunchConfig config;
  config.workers.gpus = {"2", "GPU-5e"};
  config.workers.cpus = {{0, 1, 2, 3}, {4, 5, 6, 64, 66, 67}};
  WorkerPlan plan{Rank(3), LocalRank(1), {}, {{"OMP_NUM_THREADS", "6"}}};
  const Placed second = placed(config, plan, "/x");
  CHECK(second.device == "GPU-5e");
  CHECK(second.cpus == "4-6,64,66-67");
  CHECK(second.threads == "6");
  CHECK(second.log == "/x");
  plan.local_rank = LocalRank(0);
  CHECK(placed(config, plan, "").device == "GPU 2");
  config.workers.virtual_devices = {"7", "8"};
  CHECK(placed(config, plan, "").device == "GPU 7");
  config.workers = {};
  CHECK(placed(config, plan, "").device.empty());
}
