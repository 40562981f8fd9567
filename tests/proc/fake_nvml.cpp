// A library with NVML's functions: three GPUs, of which the second is not accessible (lost, with
// FAKE_NVML_LOST in the environment), the third has MIG and may only be asked instance by instance.
// FAKE_NVML_MIG is the number of its instances, otherwise 1; 0: it has no MIG. With
// FAKE_NVML_ONLY_MIG the first one is not accessible either. Which
// processes hold them is in the file that FAKE_NVML_HOLDERS names: a line has a GPU, a pid, bytes,
// and how often the process is listed still; "hang" there lets the call never return. With
// FAKE_NVML_ANSWER_MS each look at the first GPU takes that long.
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

namespace {

constexpr int kNotSupported = 3;
constexpr int kNoPermission = 4;
constexpr int kNotFound = 6;
constexpr int kLost = 15;

struct ProcessInfo {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance;
  unsigned compute_instance;
};

constexpr int kGpuWithMig = 2;
constexpr int kInstance = 3;  // the first of its instances
char handles[kInstance + 8];

int number_of(const void* device) {
  return static_cast<int>(static_cast<const char*>(device) - handles);
}

unsigned instances() {
  const char* const number = std::getenv("FAKE_NVML_MIG");
  return number == nullptr ? 1 : static_cast<unsigned>(std::atoi(number));
}

unsigned list(int gpu, ProcessInfo* infos, unsigned count) {
  static std::map<std::pair<int, unsigned>, int> listed;
  const char* const path = std::getenv("FAKE_NVML_HOLDERS");
  std::FILE* const file = path == nullptr ? nullptr : std::fopen(path, "re");
  unsigned found = 0;
  char line[200];
  while (file != nullptr && std::fgets(line, sizeof line, file) != nullptr) {
    while (std::strncmp(line, "hang", 4) == 0) ::pause();
    int its_gpu = 0;
    int times = 0;
    ProcessInfo info{};
    if (std::sscanf(line, "%d %u %llu %d", &its_gpu, &info.pid, &info.used, &times) != 4) continue;
    if (its_gpu != gpu || listed[{gpu, info.pid}]++ >= times || found == count) continue;
    infos[found++] = info;
  }
  if (file != nullptr) std::fclose(file);
  return found;
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
  return std::getenv("FAKE_NVML_FAILS") == nullptr ? 0 : 9;
}
int nvmlShutdown() {
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 3;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = &handles[index];
  if (index == 0 && std::getenv("FAKE_NVML_ONLY_MIG") != nullptr) return kNoPermission;
  if (index != 1) return 0;
  return std::getenv("FAKE_NVML_LOST") == nullptr ? kNoPermission : kLost;
}
int nvmlDeviceGetMigDeviceHandleByIndex(void* device, unsigned index, void** slice) {
  if (number_of(device) != kGpuWithMig || index >= instances()) return kNotFound;
  *slice = &handles[kInstance + index];
  return 0;
}
int nvmlDeviceGetMigMode(void* device, unsigned* current, unsigned* pending) {
  if (number_of(device) != kGpuWithMig) return kNotSupported;
  *current = *pending = instances() > 0 ? 1 : 0;
  return 0;
}
int nvmlDeviceGetUUID(void* device, char* uuid, unsigned length) {
  const int number = number_of(device);
  if (number < kInstance) {
    std::snprintf(uuid, length, "GPU-fake%d", number);
  } else {
    std::snprintf(uuid, length, "MIG-fake%d", number - kInstance);
  }
  return 0;
}
int nvmlDeviceGetPciInfo_v3(void* device, unsigned* info) {
  const char address[] = "unused";
  std::memcpy(info, address, sizeof address);  // 16 bytes, then domain, bus and device
  info[4] = 0x10;
  info[5] = 0xdc;
  info[6] = static_cast<unsigned>(number_of(device));
  return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v2(void* device, unsigned* count, ProcessInfo* infos) {
  const int number = number_of(device);
  if (number == kGpuWithMig && instances() > 0) return kNoPermission;
  const char* const slow = std::getenv("FAKE_NVML_ANSWER_MS");
  if (number == 0 && slow != nullptr) ::poll(nullptr, 0, std::atoi(slow));
  *count = list(number == kInstance ? kGpuWithMig : number, infos, *count);
  return 0;
}
}
