#include "trainer/program/cuda_sibling.hpp"

#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "trainer/error.hpp"

namespace ddprun::trainer {

namespace fs = std::filesystem;

namespace {

bool has_device_file() {
  std::error_code ignored;  // without /dev there is no device
  for (const auto& entry : fs::directory_iterator("/dev", ignored)) {
    const auto name = entry.path().filename().string();
    if (name.rfind("nvidia", 0) == 0 && name.size() > 6 && name[6] >= '0' && name[6] <= '9') {
      return true;
    }
  }
  return false;
}

}  // namespace

Machine inspect_machine(const std::optional<std::string>& visible_devices) {
  Machine machine;
  const bool hidden = visible_devices && (visible_devices->empty() || *visible_devices == "-1");
  machine.has_device = !hidden && has_device_file();
  std::error_code ignored;
  auto program = fs::read_symlink("/proc/self/exe", ignored);
  program += "_cuda";
  if (::access(program.c_str(), X_OK) == 0) machine.cuda_program = program;
  return machine;
}

std::optional<fs::path> program_for(DeviceChoice choice, const Machine& machine) {
  if (choice == DeviceChoice::kCpu) return std::nullopt;
  if (machine.has_device && machine.cuda_program) return machine.cuda_program;
  if (choice == DeviceChoice::kAuto) return std::nullopt;
  throw UsageError(
      machine.has_device
          ? "--device cuda: the CUDA program is missing next to this one; build the target "
            "resnet18_cifar10_cuda, or use --device cpu"
          : "--device cuda: no CUDA device is visible; use --device cpu or auto");
}

void become(const fs::path& program, char** arguments) {
  ::execv(program.c_str(), arguments);
  throw TrainerError("cannot start " + program.string() + ": " +
                     std::generic_category().message(errno));
}

}  // namespace ddprun::trainer
