#include "agent/devices/devices.hpp"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>

#include "agent/devices/nvml.hpp"
#include "agent/proc/numa.hpp"

namespace ddprun {
namespace {

namespace fs = std::filesystem;

std::string device_file(const DeviceSources& sources, int minor) {
  return sources.dev + "/nvidia" + std::to_string(minor);
}

// "GPU UUID: GPU-..." and "Device Minor: 0" of /proc/driver/nvidia/gpus/<address>/information.
std::map<std::string, std::string> information(const fs::path& path) {
  std::map<std::string, std::string> values;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(':');
    const auto value = line.find_first_not_of(" \t", colon == std::string::npos ? 0 : colon + 1);
    if (colon != std::string::npos && value != std::string::npos) {
      values[line.substr(0, colon)] = line.substr(value);
    }
  }
  return values;
}

// The driver lists every GPU of the machine; a container has device files only for its GPUs.
GpuTable gpus_by_proc(const DeviceSources& sources) {
  GpuTable table;
  std::error_code why;
  std::map<int, std::pair<std::string, std::string>> gpu_of_minor;  // its UUID and its address
  for (fs::directory_iterator entry(sources.proc, why), end; !why && entry != end;
       entry.increment(why)) {
    auto values = information(entry->path() / "information");
    const std::string& minor = values["Device Minor"];
    if (minor.empty() || minor.size() > 6 || !std::isdigit(static_cast<unsigned char>(minor[0]))) {
      continue;
    }
    const int number = std::stoi(minor);
    if (::access(device_file(sources, number).c_str(), F_OK) != 0) continue;
    gpu_of_minor[number] = {values["GPU UUID"], entry->path().filename().string()};
  }
  for (const auto& [minor, gpu] : gpu_of_minor) {
    table.uuids.push_back(gpu.first);
    table.addresses.push_back(gpu.second);
  }
  table.count = static_cast<int>(table.uuids.size());
  return table;
}

GpuTable gpus_by_dev(const DeviceSources& sources) {
  GpuTable table;
  std::error_code why;
  for (fs::directory_iterator entry(sources.dev, why), end; !why && entry != end;
       entry.increment(why)) {
    const std::string name = entry->path().filename().string();
    const bool numbered = name.starts_with("nvidia") && name.size() > 6 &&
                          std::all_of(name.begin() + 6, name.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
    if (numbered && table.count < kDevicesMax) ++table.count;
  }
  return table;
}

GpuTable all_gpus(const DeviceSources& sources) {
  if (auto table = gpus_by_nvml(sources.nvml)) return *table;
  GpuTable table = gpus_by_proc(sources);
  return table.count > 0 ? table : gpus_by_dev(sources);
}

}  // namespace

std::vector<std::string> visible_gpus(const std::optional<std::string>& cuda_visible_devices,
                                      const DeviceSources& sources) {
  return visible_devices(cuda_visible_devices, all_gpus(sources));
}

int count_gpus(const std::optional<std::string>& cuda_visible_devices,
               const DeviceSources& sources) {
  return static_cast<int>(visible_gpus(cuda_visible_devices, sources).size());
}

std::vector<std::string> visible_gpu_addresses(
    const std::optional<std::string>& cuda_visible_devices, const DeviceSources& sources) {
  return visible_addresses(cuda_visible_devices, all_gpus(sources));
}

std::vector<GpuDevice> choosable_gpus(const std::optional<std::string>& cuda_visible_devices,
                                      const DeviceSources& sources) {
  return gpu_devices(cuda_visible_devices, all_gpus(sources));
}

int count_cpus() {
  const std::size_t allowed = allowed_cpus().size();
  if (allowed > 0) return static_cast<int>(allowed);
  return static_cast<int>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
}

}  // namespace ddprun
