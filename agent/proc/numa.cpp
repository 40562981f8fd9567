#include "agent/proc/numa.hpp"

#include <errno.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

namespace ddprun {
namespace {

// CPUs are numbered below this; higher numbers in /sys are ignored.
constexpr int kCpusMax = 1 << 20;

namespace fs = std::filesystem;

Error no_topology(std::string sentence) {
  return {ErrorKind::kUsage, std::move(sentence)};
}

std::optional<int> leading_number(std::string_view text) {
  int number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc()) return std::nullopt;
  return number;
}

std::optional<std::string> line_in_file(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

using Groups = std::map<int, CpuSet>;  // by their lowest CPU

/// What one machine has; the answers to NumaQuestion.
class Topology {
 public:
  explicit Topology(const NumaQuestion& question) : question_(question), sys_(question.sys) {}

  Result<CpuSet> of_device(std::size_t device) {
    auto node = node_of(device);
    if (!node) return node.error();
    auto cpus = of_mode(device, *node);
    if (!cpus) return cpus.error();
    if (!cpus->empty()) return cpus;
    return no_topology("no CPU of NUMA node " + std::to_string(*node) + ", where device " +
                       std::to_string(device) + " is, is in the affinity of this process");
  }

 private:
  Result<CpuSet> of_mode(std::size_t device, int node) {
    switch (question_.mode) {
      case NumaMode::kNode:
        return cpus_of(node);
      case NumaMode::kSocket:
        return of_socket(node);
      case NumaMode::kExclusive:
        return exclusive(device, node);
      case NumaMode::kCoreComplex:
        return core_complex(device, node);
    }
    return CpuSet();
  }

  Result<int> node_of(std::size_t device) const {
    const std::string& address = question_.devices[device];
    const std::string name = "device " + std::to_string(device);
    if (address.empty()) return no_topology("the driver does not tell the PCI address of " + name);
    const fs::path path = sys_ / "bus/pci/devices" / address / "numa_node";
    const auto line = line_in_file(path);
    const auto node = line ? leading_number(*line) : std::nullopt;
    if (!node) return no_topology("no NUMA node of " + name + ": cannot read " + path.string());
    return std::max(*node, 0);  // -1 where there is but one
  }

  Result<CpuSet> cpus_of(int node) const {
    const fs::path path = sys_ / ("devices/system/node/node" + std::to_string(node)) / "cpulist";
    const auto line = line_in_file(path);
    if (!line && !fs::exists(path)) {
      return no_topology("no CPUs of NUMA node " + std::to_string(node) + ": cannot read " +
                         path.string());
    }
    CpuSet both;
    for (const int cpu : parse_cpus(line.value_or(""))) {
      if (question_.allowed.contains(cpu)) both.insert(cpu);
    }
    return both;
  }

  fs::path cpu_folder(int cpu) const {
    return sys_ / ("devices/system/cpu/cpu" + std::to_string(cpu));
  }

  Result<int> socket_of(int cpu) const {
    const fs::path path = cpu_folder(cpu) / "topology/physical_package_id";
    const auto line = line_in_file(path);
    const auto socket = line ? leading_number(*line) : std::nullopt;
    if (socket) return *socket;
    return no_topology("no socket of CPU " + std::to_string(cpu) + ": cannot read " +
                       path.string());
  }

  Result<CpuSet> of_socket(int own_node) const {
    auto own = cpus_of(own_node);
    if (!own || own->empty()) return own;
    auto socket = socket_of(*own->begin());
    if (!socket) return socket.error();
    CpuSet all;
    const auto nodes = line_in_file(sys_ / "devices/system/node/possible");
    for (const int node : parse_cpus(nodes.value_or(std::to_string(own_node)))) {
      const auto cpus = cpus_of(node);
      if (!cpus || cpus->empty()) continue;  // memory only, or not for this process
      auto its = socket_of(*cpus->begin());
      if (!its) return its.error();
      if (*its == *socket) all.insert(cpus->begin(), cpus->end());
    }
    return all;
  }

  /// The devices of a node, and the position of `device` among them.
  Result<std::pair<std::size_t, std::size_t>> place_of(std::size_t device, int node) const {
    std::size_t before = 0;
    std::size_t count = 0;
    for (std::size_t other = 0; other < question_.devices.size(); ++other) {
      auto its = node_of(other);
      if (!its) return its.error();
      if (*its != node) continue;
      if (other < device) ++before;
      ++count;
    }
    return std::pair(before, count);
  }

  template <class KeyOf>
  Result<Groups> grouped(int node, KeyOf key_of) const {
    auto cpus = cpus_of(node);
    if (!cpus) return cpus.error();
    Groups groups;
    for (const int cpu : *cpus) {
      auto key = key_of(cpu);
      if (!key) return key.error();
      groups[*key].insert(cpu);
    }
    return groups;
  }

  Result<int> core_of(int cpu) const {
    const fs::path path = cpu_folder(cpu) / "topology/thread_siblings_list";
    const CpuSet siblings = parse_cpus(line_in_file(path).value_or(""));
    if (!siblings.empty()) return *siblings.begin();
    return no_topology("no core of CPU " + std::to_string(cpu) + ": cannot read " + path.string());
  }

  Result<CpuSet> exclusive(std::size_t device, int node) const {
    auto place = place_of(device, node);
    if (!place) return place.error();
    auto cores = grouped(node, [this](int cpu) { return core_of(cpu); });
    if (!cores) return cores.error();
    if (cores->empty()) return CpuSet();
    const auto [before, devices] = *place;
    const std::size_t each = cores->size() / devices;
    const std::size_t more = cores->size() % devices;  // the first ones get one more
    if (each == 0) {
      return no_topology("NUMA node " + std::to_string(node) + " has " + std::to_string(devices) +
                         " devices, but only " + std::to_string(cores->size()) +
                         " cores that this process may use");
    }
    const std::size_t begin = before * each + std::min(before, more);
    const std::size_t end = begin + each + (before < more ? 1 : 0);
    CpuSet own;
    std::size_t at = 0;
    for (const auto& [lowest, cpus] : *cores) {
      if (at >= begin && at < end) own.insert(cpus.begin(), cpus.end());
      ++at;
    }
    return own;
  }

  /// The CPUs that share the highest cache for data with `cpu`.
  Result<int> cache_of(int cpu) const {
    const fs::path folder = cpu_folder(cpu) / "cache";
    int highest = -1;
    CpuSet sharing;
    std::error_code why;
    for (fs::directory_iterator entry(folder, why), end; !why && entry != end;
         entry.increment(why)) {
      if (!entry->path().filename().string().starts_with("index")) continue;
      const std::string type = line_in_file(entry->path() / "type").value_or("");
      if (type != "Unified" && type != "Data") continue;
      const auto level = leading_number(line_in_file(entry->path() / "level").value_or(""));
      if (!level || *level <= highest) continue;
      highest = *level;
      sharing = parse_cpus(line_in_file(entry->path() / "shared_cpu_list").value_or(""));
    }
    if (!sharing.empty()) return *sharing.begin();
    return no_topology("no cache of CPU " + std::to_string(cpu) + ": cannot read " +
                       folder.string());
  }

  Result<CpuSet> core_complex(std::size_t device, int node) const {
    auto place = place_of(device, node);
    if (!place) return place.error();
    auto caches = grouped(node, [this](int cpu) { return cache_of(cpu); });
    if (!caches) return caches.error();
    if (caches->empty()) return CpuSet();
    std::vector<CpuSet> order;
    for (auto& [lowest, cpus] : *caches) order.push_back(std::move(cpus));
    std::stable_sort(order.begin(), order.end(), [](const CpuSet& left, const CpuSet& right) {
      return left.size() > right.size();
    });
    return order[place->first % order.size()];
  }

  const NumaQuestion& question_;
  fs::path sys_;
};

}  // namespace

Result<std::vector<CpuSet>> cpus_near_devices(const NumaQuestion& question, int workers) {
  const std::size_t devices = question.devices.size();
  if (devices == 0)
    return no_topology("no GPU is visible here whose CPUs workers could be bound to");
  if (static_cast<std::size_t>(workers) > devices) {
    return no_topology(std::to_string(workers) + " workers need as many GPUs, but " +
                       std::to_string(devices) + (devices == 1 ? " is" : " are") + " visible here");
  }
  Topology topology(question);
  std::vector<CpuSet> all;
  for (std::size_t device = 0; device < static_cast<std::size_t>(workers); ++device) {
    auto cpus = topology.of_device(device);
    if (!cpus) return cpus.error();
    all.push_back(std::move(*cpus));
  }
  return all;
}

CpuSet parse_cpus(std::string_view text) {
  CpuSet cpus;
  std::istringstream parts{std::string(text)};
  for (std::string part; std::getline(parts, part, ',');) {
    part.erase(0, part.find_first_not_of(" \t"));
    const auto first = leading_number(part);
    const auto dash = part.find('-', 1);
    const auto last =
        dash == std::string::npos ? first : leading_number(std::string_view(part).substr(dash + 1));
    if (!first || !last || *first < 0 || *last >= kCpusMax) continue;
    for (int cpu = *first; cpu <= *last; ++cpu) cpus.insert(cpu);
  }
  return cpus;
}

CpuSet allowed_cpus() {
  CpuSet cpus;
  for (int bits = CPU_SETSIZE; bits <= kCpusMax; bits *= 2) {
    cpu_set_t* const set = CPU_ALLOC(bits);
    if (set == nullptr) break;
    const std::size_t bytes = CPU_ALLOC_SIZE(bits);
    const int error = ::sched_getaffinity(0, bytes, set) == 0 ? 0 : errno;
    for (int cpu = 0; error == 0 && cpu < bits; ++cpu) {
      if (CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes, set)) cpus.insert(cpu);
    }
    CPU_FREE(set);
    if (error != EINVAL) break;  // EINVAL: the set is too small for the kernel's number of CPUs
  }
  return cpus;
}

}  // namespace ddprun
