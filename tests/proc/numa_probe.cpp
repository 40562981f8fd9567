// Prints the CPUs of each worker for a comparison with torch's numa/binding.py:
// numa_probe SYS MODE WORKERS ALLOWED DEVICE..., MODE a number of NumaMode.
#include <cstdlib>
#include <iostream>

#include "agent/proc/numa.hpp"

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  ddprun::NumaQuestion question{static_cast<ddprun::NumaMode>(std::atoi(argv[2])),
                                {argv + 5, argv + argc},
                                ddprun::parse_cpus(argv[4]),
                                argv[1]};
  const auto found = ddprun::cpus_near_devices(question, std::atoi(argv[3]));
  if (!found) {
    std::cout << "error: " << found.error().sentence << "\n";
    return 0;
  }
  for (const ddprun::CpuSet& cpus : *found) {
    for (const int cpu : cpus) std::cout << cpu << " ";
    std::cout << "\n";
  }
}
