#include "agent/proc/cgroup.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <optional>

#include "tests/proc/test_cgroup.hpp"

using namespace proc_test;
using ddprun::Cgroup;

namespace {

/// A process of `cgroup` that runs a shell line; killed and reaped at the end.
class Inside {
 public:
  Inside(const Cgroup& cgroup, const char* line) {
    const std::string procs = cgroup.path() + "/cgroup.procs";
    pid_ = ::fork();
    if (pid_ == 0) {
      const int file = ::open(procs.c_str(), O_WRONLY);
      if (::write(file, "0", 1) == 1) ::execl("/bin/sh", "sh", "-c", line, nullptr);
      ::_exit(1);
    }
  }
  ~Inside() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  pid_t pid_;
};

const char* const kUnified =
    "29 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw\n";
const char* const kHybrid =
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

}  // namespace

TEST_CASE("the place in the hierarchy is found below the mount") {
  CHECK(ddprun::cgroup_place(kUnified, "0::/user.slice/a.scope\n") ==
        "/sys/fs/cgroup/user.slice/a.scope");
  CHECK(ddprun::cgroup_place(kHybrid, "4:memory:/x\n0::/\n") == "/sys/fs/cgroup/unified");
}

TEST_CASE("a mount of a part of the hierarchy is taken from there") {
  const char* const mounts = "29 23 0:26 /docker/ab /sys/fs/my\\040group rw - cgroup2 cgroup2 rw\n";
  CHECK(ddprun::cgroup_place(mounts, "0::/docker/ab/job\n") == "/sys/fs/my group/job");
  CHECK(ddprun::cgroup_place(mounts, "0::/docker/ab\n") == "/sys/fs/my group");
  CHECK(ddprun::cgroup_place(mounts, "0::/docker/abc\n") == std::nullopt);
}

TEST_CASE("without a hierarchy that shows this process there is no place") {
  CHECK(ddprun::cgroup_place("", "0::/\n") == std::nullopt);
  CHECK(ddprun::cgroup_place("31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n", "0::/\n") ==
        std::nullopt);
  CHECK(ddprun::cgroup_place(kUnified, "4:memory:/x\n") == std::nullopt);
  CHECK(ddprun::cgroup_place(kUnified, "0::/../other\n") == std::nullopt);
  CHECK(ddprun::cgroup_place(kUnified, "0::/a (deleted)\n") == std::nullopt);
  CHECK(ddprun::cgroup_place(" - cgroup2\n- cgroup2", "0::/") == std::nullopt);
}

TEST_CASE("cgroups can be turned off for tests") {
  REQUIRE(::setenv("DDPRUN_NO_CGROUP", "1", 1) == 0);
  CHECK_FALSE(Cgroup::of_this_process().has_value());
  ::unsetenv("DDPRUN_NO_CGROUP");
}

TEST_CASE("a cgroup holds and kills whatever session its processes make") {
  const TestCgroup group;
  if (!group) return;
  CHECK_FALSE(group->populated());
  const Inside inside(*group, "setsid sleep 1000 & setsid sh -c 'setsid sleep 1000 & :' & wait");
  CHECK(eventually([&] { return group->members().size() >= 3; }));
  CHECK(group->populated());
  CHECK_FALSE(group->remove());
  group->kill();
  CHECK(eventually([&] { return !group->populated(); }));
}

TEST_CASE("members, kill and remove reach the cgroups below") {
  const TestCgroup group;
  if (!group) return;
  const auto below = group->make("below");
  REQUIRE(below);
  const Inside inside(*below, "exec sleep 1000");
  CHECK(eventually([&] { return group->members().size() == 1; }));
  CHECK(group->populated());
  group->kill();
  CHECK(eventually([&] { return !group->populated(); }));
  CHECK(eventually([&] { return group->remove(); }));
  CHECK_FALSE(std::filesystem::exists(below->path()));
}

TEST_CASE("cgroups of runs that no longer live are removed, those in use are kept") {
  const TestCgroup group;
  if (!group) return;
  const pid_t gone = ::fork();
  if (gone == 0) ::_exit(0);
  REQUIRE(::waitpid(gone, nullptr, 0) == gone);
  const auto stale = group->make("ddprun." + std::to_string(gone) + "-a");
  const auto busy = group->make("ddprun." + std::to_string(gone) + "-b");
  const auto living = group->make("ddprun." + std::to_string(::getpid()) + "-c");
  const auto other = group->make("other");
  REQUIRE((stale && busy && living && other));
  const Inside inside(*busy, "exec sleep 1000");
  CHECK(eventually([&] { return busy->populated(); }));
  ddprun::remove_stale_run_cgroups(*group);
  CHECK_FALSE(std::filesystem::exists(stale->path()));
  CHECK(std::filesystem::exists(busy->path()));
  CHECK(std::filesystem::exists(living->path()));
  CHECK(std::filesystem::exists(other->path()));
}
