#include "agent/devices/devices.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/algorithm/string/trim.hpp>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <utility>

#include "agent/devices/nvml.hpp"
#include "agent/proc/numa.hpp"

namespace ddprun {
namespace {

namespace fs = std::filesystem;

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

// The numeric prefix of an element, parsed like strtol; -1 if it selects no GPU.
int index_of_number(const std::string& element, const GpuTable& table) {
  const char* begin = element.data() + (element.starts_with('+') ? 1 : 0);
  int index = -1;
  const auto read = std::from_chars(begin, element.data() + element.size(), index);
  return read.ec == std::errc() && index < table.count ? index : -1;
}

// The only GPU whose UUID starts with `element`.
int index_of_uuid(const std::string& element, const GpuTable& table) {
  int found = -1;
  for (std::size_t index = 0; index < table.uuids.size(); ++index) {
    if (!table.uuids[index].starts_with(element)) continue;
    if (found != -1) return -1;
    found = static_cast<int>(index);
  }
  return found;
}

int index_of(const std::string& element, const GpuTable& table) {
  const bool uuid = element.starts_with("GPU-");
  return uuid && !table.uuids.empty() ? index_of_uuid(element, table)
                                      : index_of_number(element, table);
}

std::vector<std::string> elements_of(const std::string& variable) {
  std::vector<std::string> elements;
  std::istringstream list(variable);
  for (std::string item; std::getline(list, item, ',');) {
    elements.push_back(boost::algorithm::trim_copy_if(item, is_blank));
  }
  return elements;
}

constexpr int kSlice = -1;  // the GPU of a MIG slice

struct Selected {
  std::string element;
  int index = kSlice;
};

std::vector<Selected> select(const std::optional<std::string>& variable, const GpuTable& table) {
  std::vector<Selected> selected;
  if (!variable) {
    for (int index = 0; index < table.count; ++index) {
      selected.push_back({std::to_string(index), index});
    }
    return selected;
  }
  for (const std::string& element : elements_of(*variable)) {
    if (element.starts_with("MIG-")) {
      if (selected.empty() && table.count > 0) selected.push_back({element, kSlice});
      return selected;
    }
    const int index = index_of(element, table);
    if (index < 0) break;
    const bool twice = std::any_of(selected.begin(), selected.end(),
                                   [index](const Selected& other) { return other.index == index; });
    if (twice) return {};
    selected.push_back({element, index});
  }
  return selected;
}

std::string at_or_empty(const std::vector<std::string>& texts, int index) {
  const auto position = static_cast<std::size_t>(index);
  return position < texts.size() ? texts[position] : "";
}

/// A GPU, or its instances.
std::vector<GpuDevice> devices_of_gpu(const std::string& name, int index, const GpuTable& table) {
  const std::string address = at_or_empty(table.addresses, index);
  const auto with_mig = table.instances.find(index);
  if (with_mig == table.instances.end()) return {{name, at_or_empty(table.uuids, index), address}};
  std::vector<GpuDevice> instances;
  for (const std::string& uuid : with_mig->second) instances.push_back({uuid, uuid, address, true});
  return instances;
}

/// Where no instance is known, an id is taken as it is.
std::vector<GpuDevice> device_of_instance(const std::string& id, const GpuTable& table) {
  if (table.instances.empty()) return {{id, id, "", true}};
  std::vector<GpuDevice> found;
  for (const auto& [index, uuids] : table.instances) {
    for (const std::string& uuid : uuids) {
      if (uuid.starts_with(id))
        found.push_back({id, uuid, at_or_empty(table.addresses, index), true});
    }
  }
  return found.size() == 1 ? found : std::vector<GpuDevice>();
}

/// Without the variable. An index means the same to CUDA only where no GPU has MIG.
std::vector<GpuDevice> all_devices(const GpuTable& table) {
  std::vector<GpuDevice> all;
  for (int index = 0; index < table.count; ++index) {
    const std::string name =
        table.instances.empty() ? std::to_string(index) : at_or_empty(table.uuids, index);
    const auto more = devices_of_gpu(name, index, table);
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

bool has_duplicates(const std::vector<GpuDevice>& devices) {
  std::set<std::string> uuids;
  return !std::all_of(devices.begin(), devices.end(), [&uuids](const GpuDevice& device) {
    return device.uuid.empty() || uuids.insert(device.uuid).second;
  });
}

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

std::vector<GpuDevice> gpu_devices(const std::optional<std::string>& variable,
                                   const GpuTable& table) {
  if (!variable) return all_devices(table);
  std::vector<GpuDevice> devices;
  std::set<int> indices;
  for (const std::string& element : elements_of(*variable)) {
    const bool instance = element.starts_with("MIG-");
    const int index = instance ? kSlice : index_of(element, table);
    if (!instance && index < 0) break;
    if (!instance && !indices.insert(index).second) return {};
    const auto more =
        instance ? device_of_instance(element, table) : devices_of_gpu(element, index, table);
    if (more.empty()) break;
    devices.insert(devices.end(), more.begin(), more.end());
  }
  return has_duplicates(devices) ? std::vector<GpuDevice>() : devices;
}

std::vector<std::string> visible_devices(const std::optional<std::string>& variable,
                                         const GpuTable& table) {
  std::vector<std::string> elements;
  for (Selected& selected : select(variable, table)) {
    elements.push_back(std::move(selected.element));
  }
  return elements;
}

std::vector<std::string> visible_addresses(const std::optional<std::string>& variable,
                                           const GpuTable& table) {
  std::vector<std::string> addresses;
  for (const Selected& selected : select(variable, table)) {
    const auto index = static_cast<std::size_t>(selected.index);
    const bool known = selected.index != kSlice && index < table.addresses.size();
    addresses.push_back(known ? table.addresses[index] : "");
  }
  return addresses;
}

std::vector<int> gpus_of_visible_devices(const std::optional<std::string>& variable,
                                         const GpuTable& table) {
  std::vector<int> indices;
  for (const Selected& selected : select(variable, table)) {
    if (selected.index == kSlice) return gpus_of_visible_devices(std::nullopt, table);
    indices.push_back(selected.index);
  }
  return indices;
}

std::string pci_address(unsigned domain, unsigned bus, unsigned device) {
  std::array<char, 40> text = {};
  const int length =
      std::snprintf(text.data(), text.size(), "%04x:%02x:%02x.0", domain, bus, device);
  return {text.data(), static_cast<std::size_t>(length)};
}

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
