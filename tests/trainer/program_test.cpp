

#include "tests/support/catch.hpp"
#include "trainer/error.hpp"
#include "trainer/program/cuda_sibling.hpp"
#include "trainer/program/reporter.hpp"
#include "trainer/program/route.hpp"
#include "trainer/program/torch_guard.hpp"

using namespace ddprun::trainer;

TEST_CASE("the version is parsed from a wheel's version.py") {
  CHECK(version_in("from typing import Optional\n__version__ = '2.11.0+cu130'\ndebug = False\n") ==
        "2.11.0+cu130");
  CHECK(version_in("debug = False\n").empty());
  CHECK(version_in("").empty());
}

TEST_CASE("another minor version of torch is refused with both versions and the library") {
  const LoadedTorch other{"/venv/torch/lib/libtorch_cpu.so", "2.15.0+cu132"};
  CHECK_THROWS_AS(require_torch("2.11.0", other), UsageError);
  try {
    require_torch("2.11.0", other);
  } catch (const UsageError& error) {
    const std::string sentence = error.what();
    CHECK(sentence.find("torch 2.11 ") != std::string::npos);
    CHECK(sentence.find("2.15.0+cu132") != std::string::npos);
    CHECK(sentence.find("/venv/torch/lib/libtorch_cpu.so") != std::string::npos);
    CHECK(error.exit_code() == 2);
  }
}

TEST_CASE("a patch release of the same torch, and an unknown version, pass") {
  CHECK_NOTHROW(require_torch("2.11.0", {"/a/lib/libtorch_cpu.so", "2.11.3"}));
  CHECK_NOTHROW(require_torch("2.11.0", {"/a/lib/libtorch_cpu.so", ""}));
  // 2.1 is not 2.11.
  CHECK_THROWS_AS(require_torch("2.11.0", {"/a/lib/libtorch_cpu.so", "2.1.0"}), UsageError);
}

TEST_CASE("a process without torch has no loaded torch") {
  CHECK(loaded_torch().library.empty());
}

TEST_CASE("the CPU program hands over only if a device and the CUDA program exist") {
  const Machine both{true, "/bin/trainer_cuda"};
  const Machine no_device{false, "/bin/trainer_cuda"};
  const Machine no_program{true, std::nullopt};
  CHECK(program_for(DeviceChoice::kAuto, both) == "/bin/trainer_cuda");
  CHECK(program_for(DeviceChoice::kCuda, both) == "/bin/trainer_cuda");
  CHECK_FALSE(program_for(DeviceChoice::kCpu, both));
  CHECK_FALSE(program_for(DeviceChoice::kAuto, no_device));
  CHECK_FALSE(program_for(DeviceChoice::kAuto, no_program));
}

TEST_CASE("requesting CUDA without a device or program names what is missing") {
  const auto sentence = [](const Machine& machine) -> std::string {
    try {
      (void)program_for(DeviceChoice::kCuda, machine);
    } catch (const UsageError& error) {
      return error.what();
    }
    return {};
  };
  CHECK(sentence({false, "/bin/trainer_cuda"}).find("no CUDA device is visible") !=
        std::string::npos);
  CHECK(sentence({true, std::nullopt}).find("the CUDA program is missing") != std::string::npos);
}

TEST_CASE("hidden devices do not count") {
  CHECK_FALSE(inspect_machine(std::string{}).has_device);
  CHECK_FALSE(inspect_machine(std::string{"-1"}).has_device);
}

TEST_CASE("a MASTER_ADDR that does not resolve is named") {
  try {
    (void)local_address_towards({"no-such-host.invalid", 29500});
    FAIL("resolved");
  } catch (const std::runtime_error& error) {
    CHECK(std::string(error.what()).find("no-such-host.invalid") != std::string::npos);
  }
}

TEST_CASE("the first lines name the model, the devices and the global batch size") {
  TrainerOptions options;
  RunFacts facts;
  facts.parameters = 11'173'962;
  facts.world = 2;
  facts.device = "cpu";
  facts.collectives = "gloo";
  facts.precision = "bf16";
  facts.torch = "2.11.0";
  facts.total_steps = 780;
  CHECK(model_sentence(options, facts) ==
        "ResNet-18 width 64: 11,173,962 parameters, bf16, channels_last, torch 2.11.0");
  CHECK(plan_sentence(options, facts) ==
        "2 ranks on cpu (gloo, 1 thread each), global batch 128, 780 steps, seed 0");
  CHECK(final_sentence(780, {1.1, 0.6772, 0.9, 0.97}) ==
        "final: step 780, test accuracy 67.72 % (top-3 90.00 %, top-5 97.00 %)");
}
