#include "agent/proc/process_table.hpp"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <string_view>

namespace ddprun {

namespace {

// `PID (NAME) STATE PARENT GROUP ...`, the number of threads in field 20, the start in field
// 22; the name may hold anything, brackets too.
std::optional<ProcessEntry> parse_stat(std::string_view stat) {
  const auto open = stat.find('(');
  const auto close = stat.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos) return std::nullopt;
  ProcessEntry entry;
  const std::string rest(stat.substr(close + 1));
  int threads = 0;
  constexpr const char* kFields =
      " %c %d %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %d %*s %llu";
  const int found = std::sscanf(rest.c_str(), kFields, &entry.state, &entry.parent, &entry.group,
                                &threads, &entry.started);
  if (found != 5) return std::nullopt;
  entry.pid = std::atoi(std::string(stat.substr(0, open)).c_str());
  // The state is that of the main thread, which may end before others do.
  entry.ended = (entry.state == 'Z' || entry.state == 'X') && threads <= 1;
  entry.name = stat.substr(open + 1, close - open - 1);
  return entry;
}

std::optional<ProcessEntry> read_stat(int proc, const char* pid) {
  const std::string path = std::string(pid) + "/stat";
  const int file = ::openat(proc, path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;  // gone meanwhile
  std::array<char, 1024> text{};      // what is asked for stands at its beginning
  const ssize_t bytes = ::read(file, text.data(), text.size());
  ::close(file);
  if (bytes <= 0) return std::nullopt;
  return parse_stat({text.data(), static_cast<std::size_t>(bytes)});
}

}  // namespace

std::optional<std::vector<ProcessEntry>> list_processes() {
  std::vector<ProcessEntry> entries;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
  if (proc == nullptr) return std::nullopt;
  while (const dirent* item = ::readdir(proc.get())) {
    if (item->d_name[0] < '1' || item->d_name[0] > '9') continue;
    if (auto entry = read_stat(::dirfd(proc.get()), item->d_name)) {
      entries.push_back(std::move(*entry));
    } else if (errno == EMFILE || errno == ENFILE) {
      return std::nullopt;
    }
  }
  return entries;
}

std::optional<ProcessEntry> find_process(pid_t pid) {
  return read_stat(AT_FDCWD, ("/proc/" + std::to_string(pid)).c_str());
}

std::vector<pid_t> children_of_this_process() {
  std::vector<pid_t> children;
  const pid_t self = ::getpid();
  std::ifstream list("/proc/self/task/" + std::to_string(self) + "/children");
  for (pid_t child = 0; list >> child;) children.push_back(child);
  if (list.is_open()) return children;
  const auto all = list_processes();  // a kernel without CONFIG_PROC_CHILDREN
  if (!all) return children;
  for (const ProcessEntry& entry : *all) {
    if (entry.parent == self) children.push_back(entry.pid);
  }
  return children;
}

}  // namespace ddprun
