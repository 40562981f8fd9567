#include "launcher/workers/threads.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace ddprun {
namespace {

// Six workers with a sixth of a CPU each have one.
constexpr double kRounding = 1e-6;

}  // namespace

std::vector<int> threads_of_workers(int workers, const SharedCpus& cpus) {
  std::map<int, int> sharers;  // of a CPU
  for (const CpuSet& set : cpus.bound) {
    for (const int cpu : set) ++sharers[cpu];
  }
  std::vector<int> threads;
  for (int worker = 0; worker < workers; ++worker) {
    double share = static_cast<double>(cpus.allowed) / workers;
    if (!cpus.bound.empty()) {
      share = 0;
      for (const int cpu : cpus.bound.at(static_cast<std::size_t>(worker))) {
        share += 1.0 / sharers.at(cpu);
      }
    }
    if (cpus.quota) share = std::min(share, *cpus.quota / workers);
    threads.push_back(std::max(1, static_cast<int>(std::floor(share + kRounding))));
  }
  return threads;
}

}  // namespace ddprun
