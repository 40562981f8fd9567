#include "agent/devices/nvml.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>

#include "agent/devices/devices.hpp"

namespace ddprun {

// The part of nvml.h that is used; its ABI is frozen by NVIDIA. The namespace has a name because
// GCC 14 ends in an internal error where a member of Nvml::Functions has a type of an unnamed one.
namespace nvml {

using Handle = struct NvmlDeviceTag*;
constexpr int kSuccess = 0;
constexpr int kGpuIsLost = 15;
constexpr unsigned kUuidBytes = 96;  // NVML_DEVICE_UUID_V2_BUFFER_SIZE
constexpr unsigned long long kNotAvailable = ~0ULL;
constexpr unsigned kMigEnabled = 1;
constexpr unsigned kSlicesMax = 16;  // of one GPU; there are at most 7 today

struct PciInfo {  // nvmlPciInfo_t
  char legacy_address[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned device_id;
  unsigned subsystem_id;
  char address[32];
};
static_assert(sizeof(PciInfo) == 68);

struct ProcessInfoV1 {
  unsigned pid = 0;
  unsigned long long used = 0;
};
struct ProcessInfoV2 {
  unsigned pid = 0;
  unsigned long long used = 0;
  unsigned gpu_instance = 0;
  unsigned compute_instance = 0;
};
static_assert(sizeof(ProcessInfoV1) == 16 && sizeof(ProcessInfoV2) == 24);

struct CloseLibrary {
  void operator()(void* library) const { ::dlclose(library); }
};
using Library = std::unique_ptr<void, CloseLibrary>;

template <class Info>
using ListProcesses = int(Handle, unsigned* count, Info* infos);

template <class Info>
std::optional<std::vector<GpuProcess>> list(ListProcesses<Info>* function, Handle device) {
  std::vector<Info> infos(kGpuProcessesMax);
  auto count = static_cast<unsigned>(infos.size());
  if (function(device, &count, infos.data()) != kSuccess) return std::nullopt;
  infos.resize(std::min<std::size_t>(count, infos.size()));
  std::vector<GpuProcess> processes;
  for (const Info& info : infos) {
    processes.push_back({static_cast<int>(info.pid), {}});
    if (info.used != kNotAvailable) processes.back().bytes = info.used;
  }
  return processes;
}

}  // namespace nvml

using namespace nvml;

struct Nvml::Functions {
  Library library;
  int (*stop)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle)(unsigned, Handle*) = nullptr;
  int (*uuid)(Handle, char*, unsigned) = nullptr;
  int (*pci)(Handle, PciInfo*) = nullptr;
  // The third version gives the same, but with the driver 535 in another layout.
  ListProcesses<ProcessInfoV2>* processes_v2 = nullptr;
  ListProcesses<ProcessInfoV1>* processes_v1 = nullptr;
  int (*mig)(Handle, unsigned* current, unsigned* pending) = nullptr;
  int (*slice)(Handle, unsigned, Handle*) = nullptr;

  template <class Function>
  void find(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(::dlsym(library.get(), name));
  }
  [[nodiscard]] std::optional<std::string> uuid_of(Handle device) const {
    std::array<char, kUuidBytes> text = {};
    if (uuid(device, text.data(), kUuidBytes) != kSuccess) return std::nullopt;
    text.back() = '\0';
    return text.data();
  }
  [[nodiscard]] bool has_mig(Handle gpu) const {
    unsigned current = 0;
    unsigned pending = 0;
    return mig != nullptr && slice != nullptr && mig(gpu, &current, &pending) == kSuccess &&
           current == kMigEnabled;
  }
  [[nodiscard]] std::vector<std::string> instances_of(Handle gpu) const {
    std::vector<std::string> uuids;
    for (unsigned number = 0; number < kSlicesMax; ++number) {
      Handle instance = nullptr;
      if (slice(gpu, number, &instance) != kSuccess) continue;
      if (auto its = uuid_of(instance)) uuids.push_back(std::move(*its));
    }
    return uuids;
  }
  [[nodiscard]] std::optional<std::vector<GpuProcess>> processes_on(Handle device) const {
    if (processes_v2 != nullptr) return list(processes_v2, device);
    if (processes_v1 != nullptr) return list(processes_v1, device);
    return std::nullopt;
  }
};

struct Nvml::Device {
  Handle handle = nullptr;
  int number = 0;
};

Nvml::Nvml() : functions_(std::make_unique<Functions>()) {}

Nvml::~Nvml() {
  if (functions_->stop != nullptr) functions_->stop();
}

std::unique_ptr<Nvml> Nvml::open(const std::string& library) {
  std::unique_ptr<Nvml> nvml(new Nvml());
  if (library.empty() || !nvml->start(library)) return nullptr;
  return nvml;
}

bool Nvml::start(const std::string& library) {
  Functions& its = *functions_;
  its.library.reset(::dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL));
  if (!its.library) return false;
  int (*begin)() = nullptr;
  int (*stop)() = nullptr;
  its.find(begin, "nvmlInit_v2");
  its.find(stop, "nvmlShutdown");
  its.find(its.count, "nvmlDeviceGetCount_v2");
  its.find(its.handle, "nvmlDeviceGetHandleByIndex_v2");
  its.find(its.uuid, "nvmlDeviceGetUUID");
  its.find(its.pci, "nvmlDeviceGetPciInfo_v3");
  its.find(its.processes_v2, "nvmlDeviceGetComputeRunningProcesses_v2");
  its.find(its.processes_v1, "nvmlDeviceGetComputeRunningProcesses");
  its.find(its.mig, "nvmlDeviceGetMigMode");
  its.find(its.slice, "nvmlDeviceGetMigDeviceHandleByIndex");
  const bool complete =
      stop != nullptr && its.count != nullptr && its.handle != nullptr && its.uuid != nullptr;
  if (begin == nullptr || !complete || begin() != kSuccess) return false;
  its.stop = stop;
  return list_gpus();
}

bool Nvml::list_gpus() {
  unsigned count = 0;
  if (functions_->count(&count) != kSuccess) return false;
  for (unsigned number = 0; number < std::min<unsigned>(count, kDevicesMax); ++number) {
    Handle handle = nullptr;
    if (functions_->handle(number, &handle) != kSuccess) continue;  // lost, or not accessible
    auto uuid = functions_->uuid_of(handle);
    if (!uuid) continue;
    if (functions_->has_mig(handle)) {
      table_.instances[static_cast<int>(devices_.size())] = functions_->instances_of(handle);
    }
    table_.uuids.push_back(std::move(*uuid));
    PciInfo pci = {};
    const bool placed = functions_->pci != nullptr && functions_->pci(handle, &pci) == kSuccess;
    table_.addresses.push_back(placed ? pci_address(pci.domain, pci.bus, pci.device) : "");
    devices_.push_back({handle, static_cast<int>(number)});
  }
  table_.count = static_cast<int>(table_.uuids.size());
  return true;
}

int Nvml::number_of(int index) const {
  return devices_.at(static_cast<std::size_t>(index)).number;
}

std::vector<int> Nvml::lost_gpus() const {
  std::vector<int> lost;
  unsigned count = 0;
  if (functions_->count(&count) != kSuccess) return lost;
  for (unsigned number = 0; number < std::min<unsigned>(count, kDevicesMax); ++number) {
    Handle handle = nullptr;
    if (functions_->handle(number, &handle) == kGpuIsLost) lost.push_back(static_cast<int>(number));
  }
  return lost;
}

std::vector<GpuProcess> Nvml::processes_on(int index) const {
  const Handle gpu = devices_.at(static_cast<std::size_t>(index)).handle;
  if (auto processes = functions_->processes_on(gpu)) return *processes;
  // Only the administrator may ask a GPU with MIG as a whole.
  std::vector<GpuProcess> all;
  for (unsigned number = 0; functions_->slice != nullptr && number < kSlicesMax; ++number) {
    Handle slice = nullptr;
    if (functions_->slice(gpu, number, &slice) != kSuccess) continue;
    const auto processes = functions_->processes_on(slice);
    if (processes) all.insert(all.end(), processes->begin(), processes->end());
  }
  return all;
}

std::optional<GpuTable> gpus_by_nvml(const std::string& name) {
  const auto nvml = Nvml::open(name);
  if (nvml == nullptr) return std::nullopt;
  return nvml->gpus();
}

}  // namespace ddprun
