#include "agent/proc/numa.hpp"

#include "tests/proc/support.hpp"

using ddprun::CpuSet;
using ddprun::NumaMode;
using ddprun::NumaQuestion;
using ddprun::parse_cpus;
using proc_test::TempDir;
using proc_test::write_file;

namespace {

/// Two sockets with two NUMA nodes each, of four CPUs: two cores with two threads. The cores of a
/// node have a cache each. CPU n and n + 2 of a node are threads of one core.
class FakeSys {
 public:
  FakeSys() {
    write("devices/system/node/possible", "0-3\n");
    for (int node = 0; node < 4; ++node) {
      const int first = 4 * node;
      write("devices/system/node/node" + std::to_string(node) + "/cpulist",
            std::to_string(first) + "-" + std::to_string(first + 3) + "\n");
      for (int cpu = first; cpu < first + 4; ++cpu) add_cpu(cpu, node / 2);
    }
    question.sys = folder_ / "";
    for (int cpu = 0; cpu < 16; ++cpu) question.allowed.insert(cpu);
  }
  void add_device(int bus, const std::string& node) {
    const std::string address = "0000:0" + std::to_string(bus) + ":00.0";
    write("bus/pci/devices/" + address + "/numa_node", node + "\n");
    question.devices.push_back(address);
  }
  void write(const std::string& path, const std::string& text) {
    const std::string whole = folder_ / path;
    std::filesystem::create_directories(std::filesystem::path(whole).parent_path());
    write_file(whole, text);
  }
  void remove(const std::string& path) { std::filesystem::remove_all(folder_ / path); }

  std::vector<CpuSet> cpus(NumaMode mode, int workers) {
    question.mode = mode;
    auto found = cpus_near_devices(question, workers);
    if (!found) FAIL(found.error().sentence);
    return *found;
  }
  std::string refusal(NumaMode mode, int workers) {
    question.mode = mode;
    const auto found = cpus_near_devices(question, workers);
    if (found) FAIL("accepted");
    return found.error().sentence;
  }
  NumaQuestion question;

 private:
  void add_cpu(int cpu, int socket) {
    const std::string place = "devices/system/cpu/cpu" + std::to_string(cpu);
    const int core = cpu / 4 * 4 + cpu % 2;
    const std::string threads = std::to_string(core) + "," + std::to_string(core + 2) + "\n";
    write(place + "/topology/physical_package_id", std::to_string(socket) + "\n");
    write(place + "/topology/thread_siblings_list", threads);
    add_cache(place + "/cache/index0", "Data", "1", threads);
    add_cache(place + "/cache/index1", "Instruction", "9", "0-15\n");
    add_cache(place + "/cache/index3", "Unified", "3", threads);
  }
  void add_cache(const std::string& place, const std::string& type, const std::string& level,
                 const std::string& shared) {
    write(place + "/type", type + "\n");
    write(place + "/level", level + "\n");
    write(place + "/shared_cpu_list", shared);
  }
  TempDir folder_;
};

}  // namespace

TEST_CASE("a list of CPUs is read as /sys writes it") {
  CHECK(parse_cpus("0-2,4,6-7\n") == CpuSet{0, 1, 2, 4, 6, 7});
  CHECK(parse_cpus("3") == CpuSet{3});
  CHECK(parse_cpus("").empty());
  CHECK(parse_cpus("x,-1,5-").empty());
  CHECK(parse_cpus("0-99999999").empty());
}

TEST_CASE("a worker gets the CPUs of its device's NUMA node that the process may use") {
  FakeSys sys;
  sys.add_device(1, "1");
  sys.add_device(2, "-1");  // there is but one
  sys.question.allowed.erase(5);
  CHECK(sys.cpus(NumaMode::kNode, 2) == std::vector{CpuSet{4, 6, 7}, CpuSet{0, 1, 2, 3}});
  CHECK(sys.cpus(NumaMode::kNode, 1).size() == 1);
}

TEST_CASE("a worker gets the CPUs of all NUMA nodes of its device's socket") {
  FakeSys sys;
  sys.add_device(1, "2");
  CHECK(sys.cpus(NumaMode::kSocket, 1)[0] == CpuSet{8, 9, 10, 11, 12, 13, 14, 15});
  sys.write("devices/system/node/possible", "0-5\n");  // nodes that have no CPUs, or are not there
  sys.write("devices/system/node/node4/cpulist", "\n");
  sys.question.allowed = {8, 12, 13};
  CHECK(sys.cpus(NumaMode::kSocket, 1)[0] == CpuSet{8, 12, 13});
}

TEST_CASE("exclusive divides the cores of a node among all its devices, the first get more") {
  FakeSys sys;
  sys.add_device(1, "0");
  sys.add_device(2, "1");
  sys.add_device(3, "0");
  CHECK(sys.cpus(NumaMode::kExclusive, 3) ==
        std::vector{CpuSet{0, 2}, CpuSet{4, 5, 6, 7}, CpuSet{1, 3}});
  CHECK(sys.cpus(NumaMode::kExclusive, 1)[0] == CpuSet{0, 2});  // no worker uses the third device
  sys.add_device(4, "0");
  CHECK_THAT(sys.refusal(NumaMode::kExclusive, 4),
             ContainsSubstring("3 devices, but only 2 cores"));
}

TEST_CASE("a core complex is what shares the last cache, the largest first, then round again") {
  FakeSys sys;
  for (int bus = 1; bus <= 3; ++bus) sys.add_device(bus, "0");
  CHECK(sys.cpus(NumaMode::kCoreComplex, 3) ==
        std::vector{CpuSet{0, 2}, CpuSet{1, 3}, CpuSet{0, 2}});
  sys.question.allowed.erase(2);
  CHECK(sys.cpus(NumaMode::kCoreComplex, 2) == std::vector{CpuSet{1, 3}, CpuSet{0}});
}

TEST_CASE("where there is no such topology a sentence says what is missing") {
  FakeSys sys;
  CHECK_THAT(sys.refusal(NumaMode::kNode, 1), ContainsSubstring("no GPU is visible"));
  sys.add_device(1, "0");
  CHECK_THAT(sys.refusal(NumaMode::kNode, 2), ContainsSubstring("2 workers need as many GPUs"));
  sys.remove("devices/system/cpu/cpu0/cache");
  CHECK_THAT(sys.refusal(NumaMode::kCoreComplex, 1), ContainsSubstring("no cache of CPU 0"));
  sys.remove("devices/system/cpu/cpu0/topology");
  CHECK_THAT(sys.refusal(NumaMode::kSocket, 1), ContainsSubstring("no socket of CPU 0"));
  CHECK_THAT(sys.refusal(NumaMode::kExclusive, 1), ContainsSubstring("no core of CPU 0"));
  sys.question.allowed = {15};
  CHECK_THAT(sys.refusal(NumaMode::kNode, 1), ContainsSubstring("no CPU of NUMA node 0"));
  sys.remove("devices/system/node/node0");
  CHECK_THAT(sys.refusal(NumaMode::kNode, 1), ContainsSubstring("no CPUs of NUMA node 0"));
  sys.remove("bus");
  CHECK_THAT(sys.refusal(NumaMode::kNode, 1), ContainsSubstring("no NUMA node of device 0"));
  sys.question.devices[0] = "";
  CHECK_THAT(sys.refusal(NumaMode::kNode, 1), ContainsSubstring("PCI address of device 0"));
}

TEST_CASE("the affinity of this process is never empty") {
  CHECK_FALSE(ddprun::allowed_cpus().empty());
}
