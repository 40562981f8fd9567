#include "agent/proc/nvml.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <memory>

#include "agent/proc/limits.hpp"

namespace ddprun {
namespace {

// The part of nvml.h that is used; its ABI is frozen by NVIDIA.
using NvmlDevice = struct NvmlDeviceTag*;
constexpr int kNvmlSuccess = 0;
constexpr unsigned kUuidBytes = 96;  // NVML_DEVICE_UUID_V2_BUFFER_SIZE

struct CloseLibrary {
  void operator()(void* library) const { ::dlclose(library); }
};
using Library = std::unique_ptr<void, CloseLibrary>;

template <class Function>
Function* function(const Library& library, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(library.get(), name));
}

std::optional<GpuTable> read_table(const Library& library) {
  auto* const count_of = function<int(unsigned*)>(library, "nvmlDeviceGetCount_v2");
  auto* const handle_of =
      function<int(unsigned, NvmlDevice*)>(library, "nvmlDeviceGetHandleByIndex_v2");
  auto* const uuid_of = function<int(NvmlDevice, char*, unsigned)>(library, "nvmlDeviceGetUUID");
  unsigned count = 0;
  if (count_of == nullptr || handle_of == nullptr || uuid_of == nullptr) return std::nullopt;
  if (count_of(&count) != kNvmlSuccess) return std::nullopt;
  GpuTable table;
  for (unsigned index = 0; index < std::min<unsigned>(count, kDevicesMax); ++index) {
    NvmlDevice device = nullptr;
    if (handle_of(index, &device) != kNvmlSuccess) continue;  // lost, or not accessible
    std::array<char, kUuidBytes> uuid = {};
    if (uuid_of(device, uuid.data(), kUuidBytes) != kNvmlSuccess) continue;
    uuid.back() = '\0';
    table.uuids.emplace_back(uuid.data());
  }
  table.count = static_cast<int>(table.uuids.size());
  return table;
}

}  // namespace

std::optional<GpuTable> gpus_by_nvml(const std::string& name) {
  if (name.empty()) return std::nullopt;
  const Library library(::dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL));
  if (!library) return std::nullopt;
  auto* const start = function<int()>(library, "nvmlInit_v2");
  auto* const stop = function<int()>(library, "nvmlShutdown");
  if (start == nullptr || stop == nullptr || start() != kNvmlSuccess) return std::nullopt;
  auto table = read_table(library);
  stop();
  return table;
}

}  // namespace ddprun
