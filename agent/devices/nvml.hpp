// NVML, the driver's management library, loaded at run time: it lists the GPUs, and the processes
// that hold them, without creating a CUDA context. Its calls may take as long as the driver hangs.
// Thread rule: one thread. Ownership: the destructor closes the library.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/devices/devices.hpp"

namespace ddprun {

// Processes asked for on one GPU; of a GPU with more, none are known.
inline constexpr std::size_t kGpuProcessesMax = 1024;

/// A process that the driver lists on a GPU.
struct GpuProcess {
  int pid = 0;  // in a container, older drivers give that of the host
  std::optional<unsigned long long> bytes{};
};

class Nvml {
 public:
  /// Null if the library or the driver is missing.
  [[nodiscard]] static std::unique_ptr<Nvml> open(const std::string& library);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  /// The GPUs that this process may open.
  [[nodiscard]] const GpuTable& gpus() const { return table_; }
  /// The number that nvidia-smi gives to a GPU of the table.
  [[nodiscard]] int number_of(int index) const;
  /// The numbers of those that the driver cannot reach any more ("fallen off the bus").
  [[nodiscard]] std::vector<int> lost_gpus() const;
  /// At most kGpuProcessesMax; none where the driver does not tell.
  [[nodiscard]] std::vector<GpuProcess> processes_on(int index) const;

 private:
  struct Functions;
  struct Device;
  Nvml();
  [[nodiscard]] bool start(const std::string& library);
  [[nodiscard]] bool list_gpus();

  std::unique_ptr<Functions> functions_;
  std::vector<Device> devices_;
  GpuTable table_;
};

/// The GPUs that this process may open; nullopt if the library or the driver is missing.
[[nodiscard]] std::optional<GpuTable> gpus_by_nvml(const std::string& library);

}  // namespace ddprun
