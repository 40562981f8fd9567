#include "bench/support/process.hpp"

#include <dirent.h>

#include <fstream>

namespace ddprun::bench {

namespace {

/// The sum of the lines that start with one of the prefixes, in KiB.
std::size_t kib_of(const std::string& path, const std::string& first, const std::string& second) {
  std::ifstream file(path);
  std::size_t total = 0;
  for (std::string word; file >> word;) {
    std::size_t kib = 0;
    if ((word == first || word == second) && file >> kib) total += kib;
  }
  return total;
}

}  // namespace

double cpu_seconds(const std::string& pid) {
  const std::string folder = "/proc/" + pid + "/task";
  DIR* tasks = ::opendir(folder.c_str());
  if (tasks == nullptr) return 0;
  double total_ns = 0;
  while (const dirent* task = ::readdir(tasks)) {
    if (task->d_name[0] == '.') continue;
    std::ifstream file(folder + "/" + task->d_name + "/schedstat");
    double run_ns = 0;
    if (file >> run_ns) total_ns += run_ns;
  }
  ::closedir(tasks);
  return total_ns / 1e9;
}

std::size_t resident_kib(const std::string& pid) {
  return kib_of("/proc/" + pid + "/status", "VmRSS:", "");
}

std::size_t private_kib(const std::string& pid) {
  return kib_of("/proc/" + pid + "/smaps_rollup", "Private_Clean:", "Private_Dirty:");
}

}  // namespace ddprun::bench
