// How many workers, how many threads each, which device each.
#include "base/limits.hpp"
#include "launcher/workers/config.hpp"
#include "tests/launcher/fake_machine.hpp"

using namespace ddprun;
using namespace ddprun::test;

namespace {
FakeMachine machine_with(int cpus, int gpus) {
  FakeMachine machine;
  machine.cpus = cpus;
  machine.gpus = gpus;
  return machine;
}
}  // namespace

TEST_CASE("workers are a number, the CPUs, the GPUs, or auto") {
  CHECK(config_of({"W"}).workers.count == 1);
  CHECK(config_of({"--nproc-per-node=3", "W"}).workers.count == 3);
  CHECK(config_of({"--nproc-per-node=cpu", "W"}, machine_with(6, 2)).workers.count == 6);
  CHECK(config_of({"--nproc-per-node=gpu", "W"}, machine_with(6, 2)).workers.count == 2);
  CHECK(config_of({"--nproc-per-node=auto", "W"}, machine_with(6, 2)).workers.count == 2);
  CHECK(config_of({"--nproc-per-node=auto", "W"}, machine_with(6, 0)).workers.count == 6);
}

TEST_CASE("gpu without a GPU is refused") {
  CHECK_THAT(refusal_of({"--nproc-per-node=gpu", "W"}, machine_with(6, 0)).sentence,
             ContainsSubstring("no GPU is visible"));
}

TEST_CASE("an invalid count of workers is refused with its value") {
  for (const std::string bad : {"0", "-1", "foo", "", "1.5", "4097"}) {
    CHECK_THAT(refusal_of({"--nproc-per-node", bad, "W"}).sentence,
               ContainsSubstring("--nproc-per-node='" + bad + "'"));
  }
  CHECK(config_of({"--nproc-per-node=4096", "W"}).workers.count == kWorkersPerNodeMax);
}

TEST_CASE("xpu counts Intel's GPUs, and auto does where there is no other") {
  FakeMachine machine = machine_with(6, 0);
  CHECK_THAT(refusal_of({"--nproc-per-node=xpu", "W"}, machine).sentence,
             ContainsSubstring("no XPU is visible"));
  machine.xpu_count = 3;
  CHECK(config_of({"--nproc-per-node=xpu", "W"}, machine).workers.count == 3);
  CHECK(config_of({"--nproc-per-node=auto", "W"}, machine).workers.count == 3);
  machine.gpus = 2;
  CHECK(config_of({"--nproc-per-node=xpu", "W"}, machine).workers.count == 3);
  CHECK(config_of({"--nproc-per-node=auto", "W"}, machine).workers.count == 2);
  machine.xpu_count = -1;
  CHECK_THAT(refusal_of({"--nproc-per-node=xpu", "W"}, machine).sentence,
             ContainsSubstring("ONEAPI_DEVICE_SELECTOR is odd; pass a number"));
}

TEST_CASE("with --numa-binding each worker has its CPUs, where there are devices") {
  const Words words{"--numa-binding=exclusive", "--nproc-per-node=2", "W"};
  CHECK(config_of(words, machine_with(8, 2)).workers.cpus == std::vector<CpuSet>{{20}, {21}});
  CHECK(config_of({"--nproc-per-node=2", "W"}, machine_with(8, 2)).workers.cpus.empty());
  CHECK(refusal_of(words).sentence == "--numa-binding=exclusive: there is no device");
}

TEST_CASE("a spare cannot be bound, and a bound worker starts cold") {
  const FakeMachine machine = machine_with(8, 2);
  CHECK_THAT(
      refusal_of({"--numa-binding=node", "--restart=failed", "--spares=1", "W"}, machine).sentence,
      ContainsSubstring("--numa-binding"));
  const auto config =
      config_of({"--numa-binding=node", "--warm=force", "--max-restarts=1", "a.py"}, machine);
  CHECK_THAT(config.warm->refused, ContainsSubstring("--numa-binding"));
}

TEST_CASE("threads are the CPUs a worker really has, where the user did not choose") {
  using Threads = std::vector<int>;
  const auto threads = [](const Words& words, const FakeMachine& machine) {
    return config_of(words, machine).workers.threads;
  };
  const Words two{"--nproc-per-node=2", "W"};
  CHECK(threads(two, machine_with(8, 0)) == Threads{4, 4});
  CHECK(threads({"--nproc-per-node=4", "W"}, machine_with(2, 0)) == Threads{1, 1, 1, 1});
  CHECK(threads({"W"}, machine_with(8, 0)).empty());
  for (const std::string chosen : {"4", ""}) {
    CHECK(threads(two, with_variables({{"OMP_NUM_THREADS", chosen}})).empty());
  }
  FakeMachine limited = machine_with(8, 0);
  limited.quota = 6.5;
  CHECK(threads(two, limited) == Threads{3, 3});
  CHECK(threads({"--compat", "--nproc-per-node=2", "W"}, limited) == Threads{1, 1});
}

TEST_CASE("the CPUs of a node are divided among its workers") {
  using Threads = std::vector<int>;
  CHECK(threads_of_workers(3, {8, {}, {}}) == Threads{2, 2, 2});
  CHECK(threads_of_workers(3, {2, {}, {}}) == Threads{1, 1, 1});
  CHECK(threads_of_workers(2, {8, 3.0, {}}) == Threads{1, 1});
  CHECK(threads_of_workers(2, {8, 0.5, {}}) == Threads{1, 1});
  CHECK(threads_of_workers(2, {8, 100.0, {}}) == Threads{4, 4});
}

TEST_CASE("a CPU that several workers are bound to is divided among these") {
  using Threads = std::vector<int>;
  const CpuSet near{0, 1, 2, 3, 4, 5, 6, 7};
  const CpuSet far{8, 9, 10, 11, 12, 13};
  CHECK(threads_of_workers(3, {64, {}, {near, near, far}}) == Threads{4, 4, 6});
  CHECK(threads_of_workers(3, {64, 12.0, {near, near, far}}) == Threads{4, 4, 4});
  CHECK(threads_of_workers(3, {64, {}, {{0}, {0}, {0}}}) == Threads{1, 1, 1});
  CHECK(threads_of_workers(6, {64,
                               {},
                               {{0, 1, 2, 3, 4, 5},
                                {0, 1, 2, 3, 4, 5},
                                {0, 1, 2, 3, 4, 5},
                                {0, 1, 2, 3, 4, 5},
                                {0, 1, 2, 3, 4, 5},
                                {0, 1, 2, 3, 4, 5}}}) == Threads(6, 1));
}

TEST_CASE("virtual local ranks give each worker one device of CUDA_VISIBLE_DEVICES") {
  const Words words{"--virtual-local-rank", "--nproc-per-node=2", "W"};
  CHECK(config_of(words, with_variables({{"CUDA_VISIBLE_DEVICES", "5, 7,9"}}))
            .workers.virtual_devices == std::vector<std::string>{"5", "7"});
  CHECK(config_of(words).workers.virtual_devices == std::vector<std::string>{"0", "1"});
  CHECK(config_of({"--nproc-per-node=2", "W"}).workers.virtual_devices.empty());
  CHECK_THAT(refusal_of(words, with_variables({{"CUDA_VISIBLE_DEVICES", "5"}})).sentence,
             ContainsSubstring("CUDA_VISIBLE_DEVICES=5 names 1"));
}

TEST_CASE("virtual local ranks on ROCm follow HIP_VISIBLE_DEVICES, unless it is empty") {
  const Words words{"--virtual-local-rank", "--nproc-per-node=2", "W"};
  const auto devices = [&words](const std::string& hip) {
    return config_of(words, with_variables(
                                {{"HIP_VISIBLE_DEVICES", hip}, {"CUDA_VISIBLE_DEVICES", "5,7"}}))
        .workers.virtual_devices;
  };
  CHECK(devices("2,3") == std::vector<std::string>{"2", "3"});
  CHECK(devices("") == std::vector<std::string>{"5", "7"});
  CHECK_THAT(refusal_of(words, with_variables({{"HIP_VISIBLE_DEVICES", "5"}})).sentence,
             ContainsSubstring("HIP_VISIBLE_DEVICES=5 names 1"));
}
