#include "agent/devices/devices.hpp"

#include <sched.h>
#include <stdlib.h>

#include "agent/devices/level_zero.hpp"
#include "agent/devices/nvml.hpp"
#include "tests/proc/support.hpp"

using ddprun::count_gpus;
using ddprun::DeviceSources;
using ddprun::GpuTable;
using ddprun::visible_devices;
using proc_test::TempDir;
using proc_test::write_file;

using Names = std::vector<std::string>;

namespace {

GpuTable four() {
  return {4, {"GPU-aaaa", "GPU-aabb", "GPU-bbbb", "GPU-cccc"}};
}

/// A machine of synthetic files, without NVML.
class Machine {
 public:
  Machine() {
    std::filesystem::create_directories(directory_ / "dev");
    sources.nvml = "";
    sources.proc = directory_ / "gpus";
    sources.dev = directory_ / "dev";
  }
  void add_device(const std::string& name) { write_file(directory_ / "dev/" + name, ""); }
  void add_proc(const std::string& address, const std::string& minor, const std::string& uuid) {
    std::filesystem::create_directories(directory_ / "gpus/" + address);
    write_file(directory_ / "gpus/" + address + "/information",
               "Model: \t\t NVIDIA X\nGPU UUID: \t " + uuid + "\nDevice Minor: \t " + minor + "\n");
  }
  DeviceSources sources;

 private:
  TempDir directory_;
};

}  // namespace

TEST_CASE("without CUDA_VISIBLE_DEVICES every GPU is visible by its index") {
  CHECK(visible_devices(std::nullopt, four()) == Names{"0", "1", "2", "3"});
  CHECK(visible_devices(std::nullopt, {}).empty());
}

TEST_CASE("an empty CUDA_VISIBLE_DEVICES and -1 hide all GPUs") {
  CHECK(visible_devices("", four()).empty());
  CHECK(visible_devices("-1", four()).empty());
  CHECK(visible_devices("NoDevFiles", four()).empty());
}

TEST_CASE("a list of indices ends at the first that does not exist") {
  CHECK(visible_devices("3,1", four()) == Names{"3", "1"});
  CHECK(visible_devices("0,1,4,2", four()) == Names{"0", "1"});
  CHECK(visible_devices("0,-1,2", four()) == Names{"0"});
  CHECK(visible_devices("0,,2", four()) == Names{"0"});
  CHECK(visible_devices("9999999999999", four()).empty());
  CHECK(visible_devices(" 1 , 2 ", four()) == Names{"1", "2"});
}

TEST_CASE("an index is what an element begins with, as the driver reads it") {
  CHECK(visible_devices("1gpu,+2", four()).size() == 2);
}

TEST_CASE("a GPU named twice hides all") {
  CHECK(visible_devices("0,1,0", four()).empty());
  CHECK(visible_devices("GPU-cccc,GPU-c", four()).empty());
}

TEST_CASE("UUIDs select too, shortened as long as they are unique") {
  CHECK(visible_devices("GPU-bbbb,GPU-aab", four()) == Names{"GPU-bbbb", "GPU-aab"});
  CHECK(visible_devices("GPU-cccc,GPU-aa,GPU-bbbb", four()) == Names{"GPU-cccc"});
  CHECK(visible_devices("GPU-dddd", four()).empty());
}

TEST_CASE("of a list of MIG slices a process sees the first") {
  CHECK(visible_devices("MIG-1,MIG-2", four()) == Names{"MIG-1"});
  CHECK(visible_devices("MIG-1", {}).empty());
}

TEST_CASE("without NVML the GPUs are those of /proc that have a device file") {
  Machine machine;
  machine.add_proc("0000:01:00.0", "0", "GPU-one");
  machine.add_proc("0000:02:00.0", "1", "GPU-two");
  machine.add_proc("0000:03:00.0", "2", "GPU-three");
  machine.add_proc("0000:04:00.0", "x", "GPU-broken");
  machine.add_device("nvidia0");
  machine.add_device("nvidia2");
  machine.add_device("nvidiactl");
  CHECK(count_gpus(std::nullopt, machine.sources) == 2);
  CHECK(ddprun::visible_gpus("GPU-three,GPU-two", machine.sources) == Names{"GPU-three"});
}

TEST_CASE("without NVML and /proc the device files are counted") {
  Machine machine;
  for (const char* name : {"nvidia0", "nvidia1", "nvidia10", "nvidiactl", "nvidia-uvm", "null"}) {
    machine.add_device(name);
  }
  CHECK(count_gpus(std::nullopt, machine.sources) == 3);
  CHECK(count_gpus("2,0", machine.sources) == 2);
  CHECK(count_gpus("", machine.sources) == 0);
}

TEST_CASE("a machine without GPUs has none") {
  Machine machine;
  CHECK(count_gpus(std::nullopt, machine.sources) == 0);
  machine.sources.proc = "/no/such/directory";
  machine.sources.dev = "/no/such/directory";
  machine.sources.nvml = "libno-such-library.so.1";
  CHECK(count_gpus("0", machine.sources) == 0);
}

TEST_CASE("NVML decides where it is there, and a GPU it cannot open does not count") {
  Machine machine;
  for (const char* name : {"nvidia0", "nvidia1", "nvidia2", "nvidia3"}) machine.add_device(name);
  machine.sources.nvml = FAKE_NVML;  // three GPUs, the second one not accessible
  CHECK(count_gpus(std::nullopt, machine.sources) == 2);
  CHECK(ddprun::visible_gpus("GPU-fake2", machine.sources) == Names{"GPU-fake2"});
}

TEST_CASE("the GPUs that CUDA_VISIBLE_DEVICES selects, whichever way it names them") {
  using ddprun::gpus_of_visible_devices;
  using Indices = std::vector<int>;
  CHECK(gpus_of_visible_devices(std::nullopt, four()) == Indices{0, 1, 2, 3});
  CHECK(gpus_of_visible_devices("GPU-bbbb,0", four()) == Indices{2, 0});
  CHECK(gpus_of_visible_devices("", four()).empty());
  CHECK(gpus_of_visible_devices("MIG-1,MIG-2", four()) == Indices{0, 1, 2, 3});
}

TEST_CASE("the PCI addresses of visible GPUs are NVML's or the folders of /proc") {
  Machine machine;
  machine.add_proc("0000:01:00.0", "1", "GPU-one");
  machine.add_proc("0000:02:00.0", "0", "GPU-two");
  machine.add_device("nvidia0");
  CHECK(ddprun::visible_gpu_addresses(std::nullopt, machine.sources) == Names{"0000:02:00.0"});
  machine.add_device("nvidia1");
  CHECK(ddprun::visible_gpu_addresses("1,0", machine.sources) ==
        Names{"0000:01:00.0", "0000:02:00.0"});
  CHECK(ddprun::visible_gpu_addresses("MIG-1", machine.sources) == Names{""});
  machine.sources.nvml = FAKE_NVML;
  CHECK(ddprun::visible_gpu_addresses("GPU-fake2,0", machine.sources) ==
        Names{"0010:dc:02.0", "0010:dc:00.0"});
  machine.sources = {"", "/no/such/directory", machine.sources.dev};
  CHECK(ddprun::visible_gpu_addresses("0", machine.sources) == Names{""});
}

TEST_CASE("workers may be given GPUs, and MIG instances in place of a GPU with MIG") {
  const auto names = [](const std::optional<std::string>& variable, const GpuTable& table) {
    Names all;
    for (const auto& device : ddprun::gpu_devices(variable, table)) all.push_back(device.name);
    return all;
  };
  CHECK(names(std::nullopt, four()) == Names{"0", "1", "2", "3"});
  CHECK(names("3,GPU-aab", four()) == Names{"3", "GPU-aab"});
  CHECK(names("3,GPU-cccc", four()).empty());
  CHECK(names("MIG-1,MIG-2", four()) == Names{"MIG-1", "MIG-2"});
  CHECK(names("MIG-1,MIG-1", four()).empty());
  GpuTable mixed = four();
  mixed.addresses = {"a", "b", "c", "d"};
  mixed.instances = {{1, {"MIG-x1", "MIG-x2"}}, {3, {}}};
  CHECK(names(std::nullopt, mixed) == Names{"GPU-aaaa", "MIG-x1", "MIG-x2", "GPU-bbbb"});
  CHECK(names("0,1", mixed) == Names{"0", "MIG-x1", "MIG-x2"});
  CHECK(names("MIG-x2,MIG-x,0", mixed) == Names{"MIG-x2"});
  CHECK(names("MIG-x2,1", mixed).empty());
  CHECK(names("3", mixed).empty());
  const auto instance = ddprun::gpu_devices("MIG-x2", mixed).at(0);
  CHECK(instance.address == "b");
  CHECK(instance.is_instance);
  CHECK_FALSE(ddprun::gpu_devices("0", mixed).at(0).is_instance);
}

TEST_CASE("NVML lists MIG instances with their UUIDs") {
  Machine machine;
  machine.sources.nvml = FAKE_NVML;
  ::setenv("FAKE_NVML_ONLY_MIG", "1", 1);
  ::setenv("FAKE_NVML_MIG", "2", 1);
  const auto instances = ddprun::choosable_gpus(std::nullopt, machine.sources);
  ::setenv("FAKE_NVML_MIG", "0", 1);
  const auto without_mig = ddprun::choosable_gpus(std::nullopt, machine.sources);
  ::unsetenv("FAKE_NVML_MIG");
  ::unsetenv("FAKE_NVML_ONLY_MIG");
  REQUIRE(instances.size() == 2);
  CHECK(instances[1].name == "MIG-fake1");
  CHECK(instances[1].address == "0010:dc:02.0");
  CHECK(instances[1].is_instance);
  REQUIRE(without_mig.size() == 1);
  CHECK(without_mig[0].name == "0");
  CHECK(without_mig[0].uuid == "GPU-fake2");
}

TEST_CASE("Intel's GPUs are the discrete ones of Level Zero, or else the integrated ones") {
  using ddprun::level_zero_gpus;
  CHECK(level_zero_gpus(FAKE_LEVEL_ZERO) == Names{"0000:32:00.0", ""});
  ::setenv("FAKE_ZE_INTEGRATED", "1", 1);
  CHECK(level_zero_gpus(FAKE_LEVEL_ZERO) == Names{"0000:31:00.0"});
  ::unsetenv("FAKE_ZE_INTEGRATED");
  ::setenv("FAKE_ZE_FAILS", "1", 1);
  CHECK(level_zero_gpus(FAKE_LEVEL_ZERO).empty());
  ::unsetenv("FAKE_ZE_FAILS");
  CHECK(level_zero_gpus("libno-such-library.so.1").empty());
  CHECK(level_zero_gpus("libc.so.6").empty());  // a library without its functions
}

TEST_CASE("ONEAPI_DEVICE_SELECTOR leaves GPUs of Level Zero, or is not understood") {
  using ddprun::selected_xpus;
  using Indices = std::vector<int>;
  for (const char* all : {"", "level_zero:*", "level_zero:gpu", "*:gpu", "*:*", "opencl:*;*:gpu"}) {
    CHECK(selected_xpus(all, 3) == Indices{0, 1, 2});
  }
  CHECK(selected_xpus("level_zero:2,0", 3) == Indices{0, 2});
  CHECK(selected_xpus("level_zero:1;level_zero:1,9", 3) == Indices{1});
  CHECK(selected_xpus("opencl:gpu", 3) == Indices{});
  for (const char* other : {"!level_zero:0", "level_zero:0.1", "level_zero:", "gpu", "zeus:0"}) {
    CHECK_FALSE(selected_xpus(other, 3));
  }
}

TEST_CASE("NVML lists the processes on a GPU, where it has MIG on its slices") {
  TempDir directory;
  write_file(directory / "holders", "0 4182 1073741824 9\n2 77 18446744073709551615 9\n");
  ::setenv("FAKE_NVML_HOLDERS", (directory / "holders").c_str(), 1);
  const auto nvml = ddprun::Nvml::open(FAKE_NVML);
  REQUIRE(nvml != nullptr);
  REQUIRE(nvml->gpus().count == 2);
  CHECK(nvml->lost_gpus().empty());
  CHECK(nvml->number_of(1) == 2);
  const auto whole = nvml->processes_on(0);
  const auto slice = nvml->processes_on(1);
  ::unsetenv("FAKE_NVML_HOLDERS");
  REQUIRE(whole.size() == 1);
  CHECK(whole.front().pid == 4182);
  CHECK(whole.front().bytes == 1073741824ULL);
  REQUIRE(slice.size() == 1);
  CHECK(slice.front().pid == 77);
  CHECK_FALSE(slice.front().bytes);  // NVML_VALUE_NOT_AVAILABLE
}

TEST_CASE("an NVML whose driver is not there is as good as none") {
  ::setenv("FAKE_NVML_FAILS", "1", 1);
  CHECK_FALSE(ddprun::gpus_by_nvml(FAKE_NVML).has_value());
  ::unsetenv("FAKE_NVML_FAILS");
  CHECK_FALSE(ddprun::gpus_by_nvml("libc.so.6").has_value());  // a library without NVML's functions
}

TEST_CASE("CPUs are counted in the affinity set") {
  cpu_set_t before;
  REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
  CHECK(ddprun::count_cpus() == CPU_COUNT(&before));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  }
  REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
  CHECK(ddprun::count_cpus() == 1);
  ::sched_setaffinity(0, sizeof before, &before);
}
