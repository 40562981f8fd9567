#include "agent/devices/level_zero.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <sstream>

#include "agent/devices/devices.hpp"

namespace ddprun {
namespace {

// The part of ze_api.h that is used; its ABI is stable.
constexpr std::uint32_t kOnlyGpus = 1;
constexpr std::uint32_t kIntegrated = 1;
constexpr int kTypeGpu = 1;

struct DeviceProperties {  // ze_device_properties_t
  int kind = 0x3;
  void* next = nullptr;
  int type = 0;
  std::uint32_t vendor = 0;
  std::uint32_t id = 0;
  std::uint32_t flags = 0;
  char rest[512] = {};  // a few hundred bytes that are not looked at
};

struct PciProperties {  // ze_pci_ext_properties_t
  int kind = 0x10008;
  void* next = nullptr;
  std::uint32_t domain = 0;
  std::uint32_t bus = 0;
  std::uint32_t device = 0;
  std::uint32_t function = 0;
  char rest[64] = {};
};

class LevelZero {
 public:
  explicit LevelZero(const std::string& library)
      : library_(::dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL)) {
    // Never closed: the driver may have started threads.
    if (library_ == nullptr) return;
    find(init_, "zeInit");
    find(drivers_, "zeDriverGet");
    find(devices_, "zeDeviceGet");
    find(properties_, "zeDeviceGetProperties");
    find(pci_, "zeDevicePciGetPropertiesExt");
  }

  [[nodiscard]] bool start() const {
    const bool complete =
        init_ != nullptr && drivers_ != nullptr && devices_ != nullptr && properties_ != nullptr;
    return complete && init_(kOnlyGpus) == 0;
  }

  [[nodiscard]] std::vector<std::string> gpus() const {
    const auto drivers = list(drivers_);
    for (const bool integrated : {false, true}) {
      for (void* driver : drivers) {
        std::vector<std::string> found = gpus_of(driver, integrated);
        if (!found.empty()) return found;
      }
    }
    return {};
  }

 private:
  template <class Function>
  void find(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(::dlsym(library_, name));
  }

  template <class Ask>
  static std::vector<void*> list(Ask ask) {
    std::uint32_t count = 0;
    if (ask(&count, nullptr) != 0) return {};
    count = std::min<std::uint32_t>(count, kDevicesMax);
    std::vector<void*> all(count);
    if (count == 0 || ask(&count, all.data()) != 0) return {};
    all.resize(std::min<std::size_t>(count, all.size()));
    return all;
  }

  [[nodiscard]] std::vector<std::string> gpus_of(void* driver, bool integrated) const {
    std::vector<std::string> found;
    const auto its_devices = [this, driver](std::uint32_t* count, void** all) {
      return devices_(driver, count, all);
    };
    for (void* device : list(its_devices)) {
      DeviceProperties properties;
      if (properties_(device, &properties) != 0 || properties.type != kTypeGpu) continue;
      if (((properties.flags & kIntegrated) != 0) != integrated) continue;
      PciProperties pci;
      const bool placed = pci_ != nullptr && pci_(device, &pci) == 0;
      found.push_back(placed ? pci_address(pci.domain, pci.bus, pci.device) : "");
    }
    return found;
  }

  void* library_;
  int (*init_)(std::uint32_t flags) = nullptr;
  int (*drivers_)(std::uint32_t* count, void** drivers) = nullptr;
  int (*devices_)(void* driver, std::uint32_t* count, void** devices) = nullptr;
  int (*properties_)(void* device, DeviceProperties* properties) = nullptr;
  int (*pci_)(void* device, PciProperties* properties) = nullptr;
};

bool add_positions(const std::string& names, std::vector<int>& positions) {
  std::istringstream parts(names);
  for (std::string part; std::getline(parts, part, ',');) {
    int number = -1;
    const char* const end = part.data() + part.size();
    const auto read = std::from_chars(part.data(), end, number);
    if (read.ec != std::errc() || read.ptr != end || number < 0) return false;
    positions.push_back(number);
  }
  return !names.empty();
}

}  // namespace

std::vector<std::string> level_zero_gpus(const std::string& library) {
  const LevelZero level_zero(library);
  return level_zero.start() ? level_zero.gpus() : std::vector<std::string>();
}

std::optional<std::vector<int>> selected_xpus(std::string_view selector, int count) {
  std::vector<int> all(static_cast<std::size_t>(count));
  for (int index = 0; index < count; ++index) all[static_cast<std::size_t>(index)] = index;
  if (selector.empty()) return all;
  std::vector<int> positions;
  std::istringstream terms{std::string(selector)};
  for (std::string term; std::getline(terms, term, ';');) {
    const auto colon = term.find(':');
    if (colon == std::string::npos) return std::nullopt;
    const std::string backend = term.substr(0, colon);
    const std::string devices = term.substr(colon + 1);
    if (backend == "opencl" || backend == "cuda" || backend == "hip") continue;
    if (backend != "level_zero" && backend != "*") return std::nullopt;
    if (devices == "*" || devices == "gpu") return all;
    if (!add_positions(devices, positions)) return std::nullopt;
  }
  std::sort(positions.begin(), positions.end());
  positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
  std::erase_if(positions, [count](int position) { return position >= count; });
  return positions;
}

}  // namespace ddprun
