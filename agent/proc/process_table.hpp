// What /proc says about processes. A picture of one moment: what it names may be gone when it is
// read. Thread rule: the io_context's thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ddprun {

// What is read of the environment of a process: a mark beyond it is not found.
inline constexpr std::size_t kEnvironmentBytesMax = 256 * 1024;
// Processes below this one that are looked at to find out whose a connection is: about 20 ms.
inline constexpr std::size_t kProcessesBelowMax = 1000;

/// The text of /proc/PID/stat, or of that of a thread. Keep it while this is used.
class Stat {
 public:
  explicit Stat(std::string_view text);
  /// The number of the last field; 0: there is none.
  [[nodiscard]] std::size_t fields() const {
    return fields_.empty() ? 0 : fields_.size() + kFirst - 1;
  }
  /// The name may hold anything, brackets too.
  [[nodiscard]] std::string_view name() const { return name_; }
  [[nodiscard]] char state() const { return fields_.empty() ? '?' : fields_.front().front(); }
  /// A field by its number in proc(5), from 4 on; 0 where it is missing.
  [[nodiscard]] long long operator[](std::size_t field) const;

 private:
  static constexpr std::size_t kFirst = 3;  // the state
  std::string_view name_;
  std::vector<std::string_view> fields_;
};

/// The beginning of /proc/PID/`name`; empty when it cannot be read.
[[nodiscard]] std::string read_proc(pid_t process, const std::string& name);
/// The target of a link there, such as "exe" and "fd/4"; empty when it cannot be read.
[[nodiscard]] std::string link_of(pid_t process, const std::string& name);
/// What follows `name` at the beginning of a line, without the blanks between them; none: no line
/// begins with it.
[[nodiscard]] std::optional<std::string_view> value_of(std::string_view text,
                                                       std::string_view name);

/// The main thread first.
[[nodiscard]] std::vector<pid_t> threads_of(pid_t process, std::size_t limit = std::string::npos);

struct ProcessEntry {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  pid_t foreground_group = -1;     // of its terminal; -1: it has none
  unsigned long long started = 0;  // in clock ticks since boot
  long long resident_bytes = 0;
  int threads = 0;
  char state = '?';    // as ps shows it: R, S, D, T, Z...
  bool ended = false;  // a zombie: no thread runs any more, its parent has not asked yet
  std::string name;    // as ps shows it, at most 15 bytes
};

/// Calls `visit` for every process that can be seen, each as soon as it is read, in the order of
/// pids: a process that is forked meanwhile is usually still met. False where /proc cannot be read,
/// or only in part because descriptors have run out. Costs about 10 µs for each.
[[nodiscard]] bool for_each_process(const std::function<void(const ProcessEntry&)>& visit);
/// All of them; none where that is false.
[[nodiscard]] std::optional<std::vector<ProcessEntry>> list_processes();
/// One of them; none when it is gone or cannot be read.
[[nodiscard]] std::optional<ProcessEntry> find_process(pid_t pid);

/// The kernel's list of the children of this process's main thread (CLOEXEC, the caller closes it);
/// -1 on a kernel that does not list them (CONFIG_PROC_CHILDREN).
[[nodiscard]] int open_children_of_this_process();
/// Those of it, alive or zombies, in the order in which they became children. Complete, because
/// only this process reaps them.
[[nodiscard]] std::vector<pid_t> read_children(int list);
/// Children of another process, or of one of its threads, alive or zombies. Some are missing if it
/// reaps others meanwhile. Empty on a kernel that does not list them.
[[nodiscard]] std::vector<pid_t> children_of(pid_t process);
[[nodiscard]] std::vector<pid_t> children_of(pid_t process, pid_t thread);
/// Those of all processes, by their parent, from one pass over /proc.
using Children = std::multimap<pid_t, pid_t>;
[[nodiscard]] Children children_by_pass();

/// Those of `roots` that live, and what descends from them and lives, parents before children, at
/// most `limit`. Costs about 20 µs for each, however many other processes there are; a pass over
/// /proc on a kernel that lists no children.
[[nodiscard]] std::vector<ProcessEntry> processes_below(const std::vector<pid_t>& roots,
                                                        std::size_t limit);

/// Whether a process below this one, among the first kProcessesBelowMax of them, has this effective
/// user id.
[[nodiscard]] bool any_process_below_runs_as(uid_t uid);

/// The value of a variable in the environment that a process was started with; empty where it has
/// none, or has written over it, or may not be read. At most kEnvironmentBytesMax of it are read.
[[nodiscard]] std::string environment_of(pid_t pid, const std::string& variable);

}  // namespace ddprun
