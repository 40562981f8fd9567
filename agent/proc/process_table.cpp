#include "agent/proc/process_table.hpp"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>

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
  constexpr const char* kFields =
      " %c %d %d %d %*s %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %d %*s %llu %*s %lld";
  long long pages = 0;
  const int found =
      std::sscanf(rest.c_str(), kFields, &entry.state, &entry.parent, &entry.group, &entry.session,
                  &entry.foreground_group, &entry.threads, &entry.started, &pages);
  if (found != 8) return std::nullopt;
  entry.resident_bytes = pages * ::sysconf(_SC_PAGESIZE);
  entry.pid = std::atoi(std::string(stat.substr(0, open)).c_str());
  // The state is that of the main thread, which may end before others do.
  entry.ended = (entry.state == 'Z' || entry.state == 'X') && entry.threads <= 1;
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

using Children = std::multimap<pid_t, pid_t>;  // by their parent

Children children_by_pass() {
  Children children;
  static_cast<void>(for_each_process(
      [&](const ProcessEntry& entry) { children.emplace(entry.parent, entry.pid); }));
  return children;
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

int open_children_of_this_process() {
  const std::string self = std::to_string(::getpid());
  return ::open(("/proc/self/task/" + self + "/children").c_str(), O_RDONLY | O_CLOEXEC);
}

std::vector<pid_t> read_children(int list) {
  std::vector<pid_t> children;
  std::array<char, 4096> part;
  pid_t pid = 0;
  off_t from = 0;
  for (ssize_t bytes = 0; (bytes = ::pread(list, part.data(), part.size(), from)) > 0;) {
    from += bytes;
    for (const char letter : std::string_view(part.data(), static_cast<std::size_t>(bytes))) {
      if (letter >= '0' && letter <= '9') {
        pid = pid * 10 + (letter - '0');
      } else if (pid != 0) {
        children.push_back(std::exchange(pid, 0));
      }
    }
  }
  return children;
}

// The kernel keeps a list for each thread.
std::vector<pid_t> children_of(pid_t process) {
  std::vector<pid_t> children;
  const std::string tasks = "/proc/" + std::to_string(process) + "/task/";
  const auto add = [&](const std::string& thread) {
    const int list = ::open((tasks + thread + "/children").c_str(), O_RDONLY | O_CLOEXEC);
    if (list < 0) return;
    const std::vector<pid_t> its = read_children(list);
    children.insert(children.end(), its.begin(), its.end());
    ::close(list);
  };
  const std::unique_ptr<DIR, int (*)(DIR*)> opened(::opendir(tasks.c_str()), ::closedir);
  if (opened == nullptr) return children;
  while (const dirent* item = ::readdir(opened.get())) {
    if (item->d_name[0] != '.') add(item->d_name);
  }
  return children;
}

std::vector<ProcessEntry> processes_below(const std::vector<pid_t>& roots, std::size_t limit) {
  std::vector<ProcessEntry> found;
  const int own = open_children_of_this_process();
  const bool listed = own >= 0;
  if (listed) ::close(own);
  const Children children = listed ? Children() : children_by_pass();
  std::unordered_set<pid_t> known(roots.begin(), roots.end());
  std::deque<pid_t> next(roots.begin(), roots.end());
  for (; !next.empty() && found.size() < limit; next.pop_front()) {
    auto entry = find_process(next.front());
    if (!entry || entry->ended) continue;
    const auto add = [&](pid_t child) {
      if (known.insert(child).second) next.push_back(child);
    };
    if (listed) {
      for (const pid_t child : children_of(entry->pid)) add(child);
    } else {
      const auto [from, to] = children.equal_range(entry->pid);
      for (auto child = from; child != to; ++child) add(child->second);
    }
    found.push_back(std::move(*entry));
  }
  return found;
}

// The owner of /proc/PID is root for a process that has changed its user.
bool any_process_below_runs_as(uid_t uid) {
  const auto below = processes_below({::getpid()}, kProcessesBelowMax);
  return std::any_of(below.begin(), below.end(), [&](const ProcessEntry& process) {
    return process.pid != ::getpid() && effective_user_of(process.pid) == uid;
  });
}

std::string environment_of(pid_t pid, const std::string& variable) {
  const std::string path = "/proc/" + std::to_string(pid) + "/environ";
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  std::string text(1, '\0');
  std::array<char, 16 * 1024> part;  // not filled with zeros: there are thousands of processes
  ssize_t bytes = 0;
  while (text.size() < kEnvironmentBytesMax &&
         (bytes = ::read(file, part.data(), part.size())) > 0) {
    text.append(part.data(), static_cast<std::size_t>(bytes));
  }
  ::close(file);
  const std::string wanted = '\0' + variable + '=';
  const auto at = text.find(wanted);
  if (at == std::string::npos) return {};
  const auto begin = at + wanted.size();
  return text.substr(begin, text.find('\0', begin) - begin);
}

}  // namespace ddprun
