// Cgroup: a directory of the cgroup v2 hierarchy, in which the kernel keeps every process that was
// started from the first one in it, whatever session it made. Everything here is optional: without
// a writable hierarchy there is no Cgroup, and its callers look for descendants in other ways. Only
// system calls. Thread rule: one thread. Ownership: a Cgroup is a path; nothing is removed or
// killed by a destructor.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ddprun {

/// Where the cgroup v2 hierarchy is mounted and what part of it this process is in, from the texts
/// of /proc/self/mountinfo and /proc/self/cgroup; none if it is not mounted, or our place in it is
/// not below the mount. Also finds the v2 mount of a hybrid system.
[[nodiscard]] std::optional<std::string> cgroup_place(std::string_view mountinfo,
                                                      std::string_view self_cgroup);

/// Where the cgroup is that limits a resource ("memory") for this process, in whichever version of
/// cgroups has that controller; none if neither is mounted.
struct ControllerPlace {
  std::string folder;
  std::string mount;  // the folder of the hierarchy, at or above it
};
[[nodiscard]] std::optional<ControllerPlace> controller_place(std::string_view mountinfo,
                                                              std::string_view self_cgroup,
                                                              std::string_view controller);

/// The CPUs whose time this process may use, by the quotas of its cgroup and those above it (v2:
/// cpu.max, v1: cpu.cfs_quota_us); none: as many as there are. `root`: before each path, for tests.
[[nodiscard]] std::optional<double> cpu_quota(const std::string& root = "");

class Cgroup {
 public:
  explicit Cgroup(std::string path) : path_(std::move(path)) {}
  /// The cgroup of this process. None also with DDPRUN_NO_CGROUP=1 in the environment, which is for
  /// tests.
  [[nodiscard]] static std::optional<Cgroup> of_this_process();

  /// A new cgroup in this one; none where that is not allowed, or where no process could be put
  /// into it.
  [[nodiscard]] std::optional<Cgroup> make(const std::string& name) const;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string name() const { return path_.substr(path_.rfind('/') + 1); }
  /// A descriptor (CLOEXEC) for clone3(CLONE_INTO_CGROUP), which the caller closes; -1 with errno.
  [[nodiscard]] int open() const;
  /// Moves a process into it; what that has started stays where it is.
  [[nodiscard]] bool take(pid_t process) const;
  /// SIGKILL to every process in it and below it, also to those that are being forked now. Without
  /// cgroup.kill (before Linux 5.14), to those that are seen.
  void kill() const;
  /// Whether a process lives in it or below it; False when it does not exist, true when that
  /// cannot be read.
  [[nodiscard]] bool populated() const;
  /// The processes in it and below it that have not been reaped; 0 for one of another PID
  /// namespace.
  [[nodiscard]] std::vector<pid_t> members() const;
  /// Removes it and what is below it. False while a process is in it, which zombies can be for a
  /// moment.
  bool remove() const;

 private:
  std::string path_;
};

/// The cgroup of one run of ddprun: the one this process is in if it has such a name already, or
/// else a new one below it, `ddprun.PID-NONCE`, which is removed at the end with those that runs
/// left there that no longer live.
class RunCgroup {
 public:
  explicit RunCgroup(const std::string& nonce);
  ~RunCgroup();
  RunCgroup(const RunCgroup&) = delete;
  RunCgroup& operator=(const RunCgroup&) = delete;
  [[nodiscard]] const std::optional<Cgroup>& get() const { return cgroup_; }

 private:
  std::optional<Cgroup> ours_;
  std::optional<Cgroup> cgroup_;
};

/// Those that the process `owner` made beside this process, which may have ended.
[[nodiscard]] std::vector<Cgroup> run_cgroups_of(pid_t owner);
/// Removes the empty cgroups that runs left in `parent`: those whose PID exists no longer.
void remove_stale_run_cgroups(const Cgroup& parent);

}  // namespace ddprun
