// resnet18_cifar10 and resnet18_cifar10_cuda: the reference workload.
#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "trainer/device/accelerator.hpp"
#include "trainer/error.hpp"
#include "trainer/options/options.hpp"
#include "trainer/program/cuda_sibling.hpp"
#include "trainer/program/torch_guard.hpp"
#include "trainer/recover/agent_worlds.hpp"
#include "trainer/train/training.hpp"
#include "worker_api/worker.hpp"

namespace {

using namespace ddprun;
using namespace ddprun::trainer;

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

// If the program is started with stdout closed (`>&-`), the first file it opens would get that
// descriptor, and console output would end up in metrics.csv.
void fill_standard_descriptors() {
  int number = 0;
  while (number >= 0 && number <= 2) number = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (number > 2) ::close(number);
}

// Every step allocates the same large tensors. Returning them to the kernel causes page faults,
// which accounted for all of the CPU time that bench/trainer measured above Python DDP.
void keep_freed_memory() {
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the maximum that glibc accepts
  ::mallopt(M_TRIM_THRESHOLD, 512 << 20);
}

void train(int argc, char** argv) {
  require_torch(DDPRUN_TORCH_VERSION, loaded_torch());
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const auto parsed = parse_options(arguments, {variable("LOCAL_RANK")});
  if (const auto* help = std::get_if<HelpText>(&parsed)) {
    std::fputs(help->text.c_str(), stdout);
    return;
  }
  const auto& options = std::get<TrainerOptions>(parsed);
  if (!built_with_cuda()) {
    const auto machine = inspect_machine(variable("CUDA_VISIBLE_DEVICES"));
    if (const auto program = program_for(options.device, machine)) become(*program, argv);
  }
  std::string problem;
  auto world = read_worker_environment(problem);
  if (!world) throw UsageError(problem);
  const auto worlds = options.recover == Switch::kOn ? agent_worlds() : nullptr;
  if (options.recover == Switch::kOn && !worlds) {
    std::fputs("resnet18_cifar10: --recover has no effect without ddprun --restart=failed\n",
               stderr);
  }
  const bool spare = variable("DDPRUN_SPARE") && !world->launched;
  if (spare && !worlds) throw TrainerError("a spare needs --recover and ddprun");
  if (spare) {
    world.reset();
  } else if (worlds) {
    if (const auto first = worlds->next()) world = first;  // the same, if nothing has happened yet
  }
  run_training(options, world, worlds.get());
}

int report(const std::string& sentence, int code) {
  const auto rank = variable("RANK");
  std::fprintf(stderr, "resnet18_cifar10: %s%s\n", rank ? ("rank " + *rank + ": ").c_str() : "",
               sentence.c_str());
  record_error(sentence);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  fill_standard_descriptors();
  keep_freed_memory();
  ignore_sigpipe();  // otherwise Gloo's write to a dead peer would kill this rank
  try {
    train(argc, argv);
    return 0;
  } catch (const TrainerError& error) {
    return report(error.what(), error.exit_code());
  } catch (const std::exception& error) {
    return report(error.what(), 1);
  }
}
