#include "agent/proc/evidence.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "agent/proc/cgroup.hpp"
#include "tests/proc/support.hpp"

using namespace ddprun;
using proc_test::TempDir;
using proc_test::write_file;

namespace {

const char* const kHybrid =
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
    "35 31 0:32 /job /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "36 31 0:33 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

}  // namespace

TEST_CASE("the cgroup of a controller is found in either version") {
  const char* const ours = "5:cpu,cpuacct:/a\n4:memory:/job/x\n0::/u\n";
  const auto memory = controller_place(kHybrid, ours, "memory");
  REQUIRE(memory);
  CHECK(memory->folder == "/sys/fs/cgroup/memory/x");
  CHECK(memory->mount == "/sys/fs/cgroup/memory");
  CHECK(controller_place(kHybrid, ours, "cpuacct")->folder == "/sys/fs/cgroup/cpu/a");
  CHECK(controller_place(kHybrid, ours, "pids")->folder == "/sys/fs/cgroup/unified/u");
  CHECK_FALSE(controller_place("", ours, "memory"));
}

TEST_CASE("the quota of CPU time is the least of a cgroup and those above it") {
  const TempDir root;
  const auto write = [&root](const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root / path).parent_path());
    write_file(root / path, text);
  };
  CHECK_FALSE(cpu_quota(root.path()));  // no /proc
  write("proc/self/mountinfo", "36 31 0:33 / /cg rw - cgroup2 cgroup2 rw\n");
  write("proc/self/cgroup", "0::/job/step\n");
  CHECK_FALSE(cpu_quota(root.path()));
  write("cg/job/step/cpu.max", "max 100000\n");
  CHECK_FALSE(cpu_quota(root.path()));
  write("cg/cpu.max", "800000 100000\n");
  CHECK(cpu_quota(root.path()) == 8.0);
  write("cg/job/cpu.max", "150000 100000\n");
  CHECK(cpu_quota(root.path()) == 1.5);
  write("cg/job/cpu.max", "broken");
  CHECK(cpu_quota(root.path()) == 8.0);
}

TEST_CASE("in cgroups v1 a quota of CPU time is in two files, and -1 is none") {
  const TempDir root;
  for (const char* folder : {"proc/self", "sys/fs/cgroup/cpu/a"}) {
    std::filesystem::create_directories(root / folder);
  }
  write_file(root / "proc/self/mountinfo", kHybrid);
  write_file(root / "proc/self/cgroup", "5:cpu,cpuacct:/a\n0::/u\n");
  const std::string folder = root / "sys/fs/cgroup/cpu/a";
  write_file(folder + "/cpu.cfs_period_us", "50000\n");
  write_file(folder + "/cpu.cfs_quota_us", "-1\n");
  CHECK_FALSE(cpu_quota(root.path()));
  write_file(folder + "/cpu.cfs_quota_us", "200000\n");
  CHECK(cpu_quota(root.path()) == 4.0);
}

TEST_CASE("soft limits are read, and unlimited ones are absent") {
  const LimitEvidence limits = parse_limits(
      "Limit                     Soft Limit           Hard Limit           Units     \n"
      "Max cpu time              60                   unlimited            seconds   \n"
      "Max file size             unlimited            unlimited            bytes     \n"
      "Max core file size        0                    unlimited            bytes     \n"
      "Max processes             96000                96000                processes \n"
      "Max open files            1024                 1048576              files     \n"
      "Max address space         18446744073709551614 unlimited            bytes     \n");
  CHECK(limits.known);
  CHECK(limits.cpu_seconds == 60);
  CHECK_FALSE(limits.file_bytes);
  CHECK(limits.core_bytes == 0);
  CHECK(limits.processes == 96000);
  CHECK(limits.descriptors == 1024);
  CHECK(limits.address_space == INT64_MAX);
  CHECK_FALSE(parse_limits("").known);
}

TEST_CASE("a process that has ended and was not reaped still has its limits") {
  const pid_t process = ::fork();
  if (process == 0) {
    const rlimit limit{17, 17};
    ::setrlimit(RLIMIT_NOFILE, &limit);
    ::_exit(0);
  }
  siginfo_t info = {};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(process), &info, WEXITED | WNOWAIT) == 0);
  const LimitEvidence limits = read_limits(process);
  CHECK(limits.descriptors == 17);
  CHECK(limits.cpu_used == 0);
  ::waitpid(process, nullptr, 0);
  CHECK_FALSE(read_limits(process).known);
}

TEST_CASE("a file system is asked once, at the nearest folder that exists") {
  const proc_test::TempDir directory;
  const auto disks =
      read_disks({directory / "no/such/file", directory / "other", "relative", "", "/no/such"});
  REQUIRE(!disks.empty());
  CHECK(disks.size() <= 2);  // that of / may be another one
  CHECK(directory / "no/such/file" == disks.front().path + "/no/such/file");
  CHECK(disks.front().bytes > 0);
}

TEST_CASE("the paths that an error quotes are found, the last one first") {
  CHECK(quoted_paths("a '/x/y'\nOSError: [Errno 28] No space: '/data/ckpt 1' -> '/b'\nit's '/\n") ==
        std::vector<std::string>{"/b", "/data/ckpt 1", "/x/y"});
  CHECK(quoted_paths("").empty());
}

TEST_CASE("the counters of the kernel are read, or absent") {
  const MemoryBaseline baseline = read_memory_baseline();
  const MemoryEvidence memory = read_memory(baseline, "");
  CHECK(memory.kills_before.has_value() == memory.kills_after.has_value());
  if (memory.kills_before) CHECK(*memory.kills_after >= *memory.kills_before);
  CHECK(memory.host_total > memory.host_available);
  if (memory.limit) CHECK(memory.peak);
}

TEST_CASE("kills for memory in the worker's own cgroup are counted there, from its start") {
  const proc_test::TempDir root;
  const auto write = [&root](const std::string& file, const std::string& text) {
    std::ofstream(root / file) << text;
  };
  std::filesystem::create_directories(root / "run/rank0");
  write("run/memory.events", "low 0\noom 2\noom_kill 3\n");
  write("run/memory.max", "max\n");
  write("run/rank0/memory.events", "low 0\noom 0\noom_kill 0\noom_group_kill 0\n");
  write("run/rank0/memory.max", "1073741824\n");
  write("run/rank0/memory.peak", "1073700000\n");
  MemoryBaseline baseline;
  baseline.memory_folders = {root / "run"};
  baseline.covers_subtree = true;
  baseline.kills = 3;
  MemoryEvidence memory = read_memory(baseline, root / "run/rank0");
  CHECK(memory.kills_before == 3);
  CHECK(memory.kills_after == 3);
  CHECK(memory.limit == 1073741824);
  CHECK(memory.peak == 1073700000);
  // The kernel killed a process of this worker, and one of another before.
  write("run/memory.events", "oom 4\noom_kill 5\n");
  write("run/rank0/memory.events", "oom 1\noom_kill 1\n");
  memory = read_memory(baseline, root / "run/rank0");
  CHECK(memory.kills_before == 0);
  CHECK(memory.kills_after == 1);
  // Without the controller in its own cgroup, the shared one counts.
  std::filesystem::remove_all(root / "run/rank0");
  memory = read_memory(baseline, root / "run/rank0");
  CHECK(memory.kills_before == 3);
  CHECK(memory.kills_after == 5);
  CHECK_FALSE(memory.limit);
}
