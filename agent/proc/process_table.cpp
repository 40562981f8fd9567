#include "agent/proc/process_table.hpp"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "agent/proc/limits.hpp"

namespace ddprun {

namespace {

// `PID (NAME) STATE PARENT GROUP SESSION ...`, the number of threads in field 20, the start in
// field 22, the resident pages in field 24; the name may hold anything, brackets too.
std::optional<ProcessEntry> parse_stat(std::string_view stat) {
  const auto open = stat.find('(');
  const auto close = stat.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos) return std::nullopt;
  ProcessEntry entry;
  const std::string rest(stat.substr(close + 1));
  int threads = 0;
  constexpr const char* kFields =
      " %c %d %d %d %*s %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %d %*s %llu %*s %lld";
  long long pages = 0;
  const int found =
      std::sscanf(rest.c_str(), kFields, &entry.state, &entry.parent, &entry.group, &entry.session,
                  &entry.foreground_group, &threads, &entry.started, &pages);
  if (found != 8) return std::nullopt;
  entry.resident_bytes = pages * ::sysconf(_SC_PAGESIZE);
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

/// From the line `Uid: REAL EFFECTIVE SAVED FILESYSTEM`.
std::optional<uid_t> effective_user_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string word; file >> word;) {
    uid_t real = 0;
    uid_t effective = 0;
    if (word == "Uid:" && file >> real >> effective) return effective;
  }
  return std::nullopt;
}

}  // namespace

bool for_each_process(const std::function<void(const ProcessEntry&)>& visit) {
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
  if (proc == nullptr) return false;
  while (const dirent* item = ::readdir(proc.get())) {
    if (item->d_name[0] < '1' || item->d_name[0] > '9') continue;
    if (const auto entry = read_stat(::dirfd(proc.get()), item->d_name)) {
      visit(*entry);
    } else if (errno == EMFILE || errno == ENFILE) {
      return false;
    }
  }
  return true;
}

std::optional<std::vector<ProcessEntry>> list_processes() {
  std::vector<ProcessEntry> entries;
  const bool all = for_each_process([&](const ProcessEntry& entry) { entries.push_back(entry); });
  if (!all) return std::nullopt;
  return entries;
}

std::optional<ProcessEntry> find_process(pid_t pid) {
  return read_stat(AT_FDCWD, ("/proc/" + std::to_string(pid)).c_str());
}

std::optional<std::vector<pid_t>> children_of_this_process() {
  std::ifstream list("/proc/self/task/" + std::to_string(::getpid()) + "/children");
  if (!list.is_open()) return std::nullopt;
  std::vector<pid_t> children;
  for (pid_t child = 0; list >> child;) children.push_back(child);
  return children;
}

// The owner of /proc/PID is root for a process that has changed its user.
bool any_process_below_runs_as(uid_t uid) {
  const auto all = list_processes();
  if (!all) return false;
  std::unordered_map<pid_t, pid_t> parents;
  for (const ProcessEntry& process : *all) parents.emplace(process.pid, process.parent);
  const auto is_below = [&](pid_t pid) {
    for (std::size_t steps = 0; steps < all->size(); ++steps) {
      const auto found = parents.find(pid);
      if (found == parents.end()) return false;
      pid = found->second;
      if (pid == ::getpid()) return true;
    }
    return false;  // pids were used again while they were read
  };
  return std::any_of(all->begin(), all->end(), [&](const ProcessEntry& process) {
    return !process.ended && is_below(process.pid) && effective_user_of(process.pid) == uid;
  });
}

std::string environment_of(pid_t pid, const std::string& variable) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/environ", std::ios::binary);
  std::string text(kEnvironmentBytesMax, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  const std::string wanted = '\0' + variable + '=';
  text.insert(text.begin(), '\0');
  const auto at = text.find(wanted);
  if (at == std::string::npos) return {};
  const auto begin = at + wanted.size();
  return text.substr(begin, text.find('\0', begin) - begin);
}

}  // namespace ddprun
