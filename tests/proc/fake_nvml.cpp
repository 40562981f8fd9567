// A library with NVML's functions: three GPUs, of which the second is lost.
#include <cstdio>
#include <cstdlib>

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
  static char handles[3];
  *device = &handles[index];
  return index == 1 ? 15 : 0;
}
int nvmlDeviceGetUUID(void* device, char* uuid, unsigned length) {
  void* first = nullptr;
  nvmlDeviceGetHandleByIndex_v2(0, &first);
  const auto index = static_cast<char*>(device) - static_cast<char*>(first);
  std::snprintf(uuid, length, "GPU-fake%d", static_cast<int>(index));
  return 0;
}
}
