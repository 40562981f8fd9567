// A library with NVML's functions: three GPUs, of which the second is not accessible (lost, with
// FAKE_NVML_LOST in the environment), the third has MIG and may only be asked slice by slice. Which
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

constexpr int kNoPermission = 4;
constexpr int kLost = 15;

struct ProcessInfo {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance;
  unsigned compute_instance;
};

char handles[4];  // the fourth is a slice of the third

int number_of(const void* device) {
  return static_cast<int>(static_cast<const char*>(device) - handles);
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
  if (index != 1) return 0;
  return std::getenv("FAKE_NVML_LOST") == nullptr ? kNoPermission : kLost;
}
int nvmlDeviceGetMigDeviceHandleByIndex(void* device, unsigned index, void** slice) {
  *slice = &handles[3];
  return number_of(device) == 2 && index == 0 ? 0 : 6;
}
int nvmlDeviceGetUUID(void* device, char* uuid, unsigned length) {
  std::snprintf(uuid, length, "GPU-fake%d", number_of(device));
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
  if (number == 2) return kNoPermission;
  const char* const slow = std::getenv("FAKE_NVML_ANSWER_MS");
  if (number == 0 && slow != nullptr) ::poll(nullptr, 0, std::atoi(slow));
  *count = list(number == 3 ? 2 : number, infos, *count);
  return 0;
}
}
