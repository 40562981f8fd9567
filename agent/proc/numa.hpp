// The CPUs near a device: the topology that /sys describes, read as torch's numa/binding.py reads
// it. Thread rule: any. Errors are sentences without the option that asked.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace ddprun {

using CpuSet = std::set<int>;

enum class NumaMode {
  kNode,         // all CPUs of the device's NUMA node
  kSocket,       // of all NUMA nodes of its socket
  kExclusive,    // the cores of the node, divided among its devices
  kCoreComplex,  // one group of cores that share their last cache, another one for each device
};

struct NumaQuestion {
  NumaMode mode = NumaMode::kNode;
  std::vector<std::string> devices;  // PCI address of each visible one, in order; "": unknown
  CpuSet allowed;                    // the only ones that workers may get
  std::string sys = "/sys";
};

/// The CPUs of each of `workers`, of which local rank n uses device n. Never an empty set.
[[nodiscard]] Result<std::vector<CpuSet>> cpus_near_devices(const NumaQuestion& question,
                                                            int workers);

/// "0-2,4", as in /sys; what is no number counts as absent.
[[nodiscard]] CpuSet parse_cpus(std::string_view text);

/// The affinity of this thread; empty if the kernel does not tell.
[[nodiscard]] CpuSet allowed_cpus();

}  // namespace ddprun
