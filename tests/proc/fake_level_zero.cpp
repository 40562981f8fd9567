// A library with Level Zero's functions: an integrated GPU, and, unless FAKE_ZE_INTEGRATED is in
// the environment, two discrete ones and a processor. With FAKE_ZE_FAILS there is no driver.
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

char handles[5];  // the driver and its devices

std::uint32_t number_of(const void* device) {
  return static_cast<std::uint32_t>(static_cast<const char*>(device) - handles);
}

void put(void* structure, std::size_t offset, std::uint32_t value) {
  std::memcpy(static_cast<char*>(structure) + offset, &value, sizeof value);
}

}  // namespace

extern "C" {

int zeInit(std::uint32_t) {
  return std::getenv("FAKE_ZE_FAILS") == nullptr ? 0 : 0x78000001;
}
int zeDriverGet(std::uint32_t* count, void** drivers) {
  if (drivers != nullptr) drivers[0] = handles;
  *count = 1;
  return 0;
}
int zeDeviceGet(void*, std::uint32_t* count, void** devices) {
  const std::uint32_t all = std::getenv("FAKE_ZE_INTEGRATED") == nullptr ? 4 : 1;
  for (std::uint32_t i = 0; devices != nullptr && i < *count && i < all; ++i) {
    devices[i] = &handles[i + 1];
  }
  *count = all;
  return 0;
}
int zeDeviceGetProperties(void* device, void* properties) {
  put(properties, 16, number_of(device) == 4 ? 2 : 1);  // type
  put(properties, 28, number_of(device) == 1 ? 1 : 0);  // flags: integrated
  return 0;
}
int zeDevicePciGetPropertiesExt(void* device, void* properties) {
  if (number_of(device) == 3) return 1;
  put(properties, 16, 0);                         // domain
  put(properties, 20, 0x30 + number_of(device));  // bus
  return 0;
}
}
