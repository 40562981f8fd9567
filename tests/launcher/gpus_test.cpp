// Which devices workers get: --gpus.
#include "tests/launcher/fake_machine.hpp"

using namespace ddprun;
using namespace ddprun::test;

namespace {

using Texts = std::vector<std::string>;

FakeMachine with_four_gpus() {
  FakeMachine machine;
  machine.gpus = 4;
  for (const std::string index : {"0", "1", "2", "3"}) {
    machine.choosable.push_back({index, "GPU-" + index + "f", "0000:0" + index + ":00.0"});
  }
  return machine;
}

FakeMachine with_instances() {
  FakeMachine machine;
  machine.choosable = {{"MIG-a", "MIG-a", "x", true}, {"MIG-b", "MIG-b", "x", true}};
  return machine;
}

std::string gpus_refused(const Words& words, const FakeMachine& machine = with_four_gpus()) {
  return refusal_of(words, machine).sentence;
}

}  // namespace

TEST_CASE("workers get the devices of --gpus, one worker for each unless a number is given") {
  const auto workers = [](const Words& words) {
    return config_of(words, with_four_gpus()).workers;
  };
  CHECK(workers({"--gpus=2,0", "W"}).gpus == Texts{"2", "0"});
  CHECK(workers({"--gpus=2,0", "W"}).count == 2);
  CHECK(workers({"--gpus=2,0", "W"}).virtual_devices.empty());
  CHECK(workers({"--gpus=2,0,1", "--nproc-per-node=2", "W"}).count == 2);
  for (const char* kind : {"gpu", "auto"}) {
    CHECK(workers({"--gpus=2", std::string("--nproc-per-node=") + kind, "W"}).count == 1);
  }
  CHECK(workers({"--gpus=all", "W"}).gpus == Texts{"0", "1", "2", "3"});
  CHECK(workers({"--gpus= 3 , 1", "W"}).gpus == Texts{"3", "1"});
  CHECK(workers({"--gpus=GPU-3,GPU-0f", "W"}).gpus == Texts{"GPU-3f", "GPU-0f"});
  CHECK(workers({"--nproc-per-node=8", "W"}).gpus.empty());
}

TEST_CASE("the devices of a variable count as those of the option, and an empty one as none") {
  FakeMachine machine = with_four_gpus();
  machine.variables["DDPRUN_GPUS"] = "1";
  CHECK(config_of({"W"}, machine).workers.gpus == Texts{"1"});
  machine.variables["DDPRUN_GPUS"] = "";
  CHECK(config_of({"W"}, machine).workers.gpus.empty());
}

TEST_CASE("a device that is not there, or listed twice, is refused with those that are") {
  const std::string visible =
      " of the devices visible here: 0 (GPU-0f), 1 (GPU-1f), 2 (GPU-2f), 3 (GPU-3f)";
  CHECK(gpus_refused({"--gpus=1,4", "W"}) == "--gpus=1,4: 4 is not one" + visible);
  CHECK(gpus_refused({"--gpus=GPU-9", "W"}) == "--gpus=GPU-9: GPU-9 is not one" + visible);
  CHECK_THAT(gpus_refused({"--gpus=GPU-", "W"}), ContainsSubstring("may mean several"));
  for (const char* twice : {"--gpus=1,1", "--gpus=1,01", "--gpus=GPU-1,GPU-1f"}) {
    CHECK_THAT(gpus_refused({twice, "W"}), ContainsSubstring("is listed twice"));
    CHECK_THAT(gpus_refused({twice, "W"}), ContainsSubstring(visible));
  }
  FakeMachine hidden;
  hidden.variables["CUDA_VISIBLE_DEVICES"] = "-1";
  CHECK_THAT(gpus_refused({"--gpus=all", "W"}, hidden),
             ContainsSubstring("no NVIDIA GPU is visible here (CUDA_VISIBLE_DEVICES=-1)"));
}

TEST_CASE("devices that a variable names by index and by UUID get one kind of names") {
  FakeMachine machine = with_four_gpus();
  machine.variables["CUDA_VISIBLE_DEVICES"] = "GPU-3,0,1";
  machine.choosable = {{"GPU-3", "GPU-3f", "c"}, {"0", "GPU-0f", "a"}, {"1", "GPU-1f", "b"}};
  const auto devices = [&machine](const std::string& choice) {
    return config_of({"--gpus=" + choice, "W"}, machine).workers.gpus;
  };
  CHECK(devices("all") == Texts{"GPU-3f", "GPU-0f", "GPU-1f"});
  CHECK(devices("0,2") == Texts{"GPU-3f", "GPU-1f"});
  CHECK(devices("1,2") == Texts{"0", "1"});
  CHECK(devices("0") == Texts{"GPU-3"});
  machine.choosable[1].uuid = "";
  CHECK_THAT(gpus_refused({"--gpus=0,1", "W"}, machine),
             ContainsSubstring("(CUDA_VISIBLE_DEVICES=GPU-3,0,1) mix indices and UUIDs"));
}

TEST_CASE("the value of --gpus is all, indices or UUIDs") {
  for (const std::string bad : {"", "x", "0,", "-1", "0-2", "all,1", "1.5"}) {
    CHECK_THAT(gpus_refused({"--gpus=" + bad, "W"}), ContainsSubstring("--gpus='" + bad + "'"));
  }
  CHECK_THAT(gpus_refused({"--gpus=0,GPU-1f", "W"}), ContainsSubstring("mixes indices and UUIDs"));
}

TEST_CASE("more workers than chosen devices are refused unless they share them") {
  const Words three{"--gpus=0,2", "--nproc-per-node=3", "W"};
  CHECK(gpus_refused(three) ==
        "--nproc-per-node=3: 3 workers cannot have a device of --gpus=0,2 each, which has 2; pass "
        "--nproc-per-node=2, or --share-gpus if several are to use one");
  Words sharing = three;
  sharing.insert(sharing.begin(), "--share-gpus");
  const Launch launch = launch_of(sharing, with_four_gpus());
  CHECK(launch.config.workers.virtual_devices == Texts{"0", "2", "0"});
  REQUIRE(launch.notes.size() == 1);
  CHECK_THAT(launch.notes[0], ContainsSubstring("LOCAL_RANK=0"));
  const Words enough{"--share-gpus", "--gpus=0,2", "W"};
  CHECK(config_of(enough, with_four_gpus()).workers.virtual_devices.empty());
  CHECK_THAT(gpus_refused({"--share-gpus", "W"}), ContainsSubstring("needs --gpus"));
  CHECK(config_of({"W"}, with_variables({{"DDPRUN_SHARE_GPUS", "1"}})).workers.gpus.empty());
}

TEST_CASE("of several MIG instances each worker sees one") {
  const Launch launch = launch_of({"--gpus=all", "W"}, with_instances());
  CHECK(launch.config.workers.count == 2);
  CHECK(launch.config.workers.virtual_devices == Texts{"MIG-a", "MIG-b"});
  REQUIRE(launch.notes.size() == 1);
  CHECK_THAT(launch.notes[0], ContainsSubstring("one MIG instance"));
  CHECK(config_of({"--gpus=MIG-b", "W"}, with_instances()).workers.virtual_devices.empty());
  FakeMachine mixed = with_instances();
  mixed.choosable.push_back({"GPU-c", "GPU-c", "y"});
  CHECK_THAT(gpus_refused({"--gpus=all", "W"}, mixed),
             ContainsSubstring("0 (MIG-a), 1 (MIG-b), 2 (GPU-c)"));
  CHECK(config_of({"--gpus=0,2", "W"}, mixed).workers.virtual_devices == Texts{"MIG-a", "GPU-c"});
}

TEST_CASE("virtual local ranks and bound CPUs are those of the chosen devices") {
  const FakeMachine machine = with_four_gpus();
  const Words words{"--virtual-local-rank", "--numa-binding=node", "--gpus=3,1", "W"};
  const auto workers = config_of(words, machine).workers;
  CHECK(workers.virtual_devices == Texts{"3", "1"});
  CHECK(machine.asked_near == Texts{"0000:03:00.0", "0000:01:00.0"});
  const auto shared =
      config_of({"--share-gpus", "--nproc-per-node=3", "--numa-binding=node", "--gpus=3,1", "W"},
                machine)
          .workers;
  CHECK(shared.cpus == std::vector<CpuSet>{{0}, {1}, {0}});
}

TEST_CASE("a spare cannot be started where each worker sees one device") {
  CHECK_THAT(gpus_refused({"--gpus=all", "--restart=failed", "--spares=1", "W"}, with_instances()),
             ContainsSubstring("MIG instances"));
}
