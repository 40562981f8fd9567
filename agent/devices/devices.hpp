// The devices of a node, counted without creating a CUDA context and without loading CUDA, and
// CUDA_VISIBLE_DEVICES, parsed like the CUDA driver does. Thread rule: one thread. Errors: none; a
// device that cannot be found does not count.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ddprun {

// GPUs looked for in /dev and NVML; more are not counted.
inline constexpr int kDevicesMax = 4096;

/// The GPUs of a machine.
struct GpuTable {
  int count = 0;
  std::vector<std::string> uuids;        // "GPU-...", one per GPU; empty if unknown
  std::vector<std::string> addresses{};  // "0000:dc:00.0", likewise
  /// Of each GPU with MIG, by its position: the UUIDs of its instances, "MIG-...".
  std::map<int, std::vector<std::string>> instances{};
};

/// A GPU, or a MIG instance of one, that a worker may be given.
struct GpuDevice {
  std::string name;     // the element of CUDA_VISIBLE_DEVICES that selects it
  std::string uuid;     // empty if unknown
  std::string address;  // of the GPU; empty if unknown
  bool is_instance = false;
};

/// The elements of `variable` that select a GPU, in order (nullopt: not set, all GPUs by index). As
/// in the driver, an index is the numeric prefix of an element ("1gpu" is 1), UUIDs may be
/// abbreviated if they are unambiguous, the list ends at the first element that selects no GPU (so
/// "" and "-1" hide all), and a duplicate GPU hides all. A list of MIG ids counts as one device,
/// because CUDA shows only the first to a process.
[[nodiscard]] std::vector<std::string> visible_devices(const std::optional<std::string>& variable,
                                                       const GpuTable& table);

/// The devices that one of several processes may be given, in the same order. Each MIG instance is
/// one of its own, and a GPU with MIG stands for its instances. As above, a duplicate hides all.
[[nodiscard]] std::vector<GpuDevice> gpu_devices(const std::optional<std::string>& variable,
                                                 const GpuTable& table);

/// The PCI address of each of them; "" for a MIG slice and where the table has none.
[[nodiscard]] std::vector<std::string> visible_addresses(const std::optional<std::string>& variable,
                                                         const GpuTable& table);

/// The positions in `table` of the GPUs that they are on; all where it names a MIG slice, which may
/// be anywhere.
[[nodiscard]] std::vector<int> gpus_of_visible_devices(const std::optional<std::string>& variable,
                                                       const GpuTable& table);

/// How /sys names a device of the PCI bus: "0000:dc:00.0", a folder of /sys/bus/pci/devices.
[[nodiscard]] std::string pci_address(unsigned domain, unsigned bus, unsigned device);

/// Where to look for devices; tests use other paths.
struct DeviceSources {
  std::string nvml = "libnvidia-ml.so.1";  // loaded with dlopen; empty: not tried
  std::string proc = "/proc/driver/nvidia/gpus";
  std::string dev = "/dev";
};

/// The selector of each GPU that a worker would see with this CUDA_VISIBLE_DEVICES (nullopt: not
/// set): elements of the variable, or "0", "1"... Uses NVML, otherwise /proc, otherwise /dev.
[[nodiscard]] std::vector<std::string> visible_gpus(
    const std::optional<std::string>& cuda_visible_devices, const DeviceSources& sources = {});

/// The number of those GPUs.
[[nodiscard]] int count_gpus(const std::optional<std::string>& cuda_visible_devices,
                             const DeviceSources& sources = {});

/// The PCI address of each of them, "0000:dc:00.0"; "" where it is unknown.
[[nodiscard]] std::vector<std::string> visible_gpu_addresses(
    const std::optional<std::string>& cuda_visible_devices, const DeviceSources& sources = {});

/// What --gpus chooses from (gpu_devices()).
[[nodiscard]] std::vector<GpuDevice> choosable_gpus(
    const std::optional<std::string>& cuda_visible_devices, const DeviceSources& sources = {});

/// CPUs in this process's affinity set; at least 1.
[[nodiscard]] int count_cpus();

}  // namespace ddprun
