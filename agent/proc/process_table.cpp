#include "agent/proc/process_table.hpp"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <deque>
#include <unordered_set>
#include <utility>

#include "agent/proc/files.hpp"
#include "base/descriptor.hpp"

namespace ddprun {

namespace {

constexpr std::size_t kBytesOfProcMax = 4096;

template <class Number>
Number parsed(std::string_view text) {
  Number number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string folder_of(pid_t process) {
  return "/proc/" + std::to_string(process) + "/";
}

// With the numbers of proc(5).
std::optional<ProcessEntry> parse_entry(const std::string& text) {
  const Stat stat(text);
  if (stat.fields() < 24) return std::nullopt;
  ProcessEntry entry;
  entry.pid = std::atoi(text.c_str());
  entry.name = stat.name();
  entry.state = stat.state();
  entry.parent = static_cast<pid_t>(stat[4]);
  entry.group = static_cast<pid_t>(stat[5]);
  entry.session = static_cast<pid_t>(stat[6]);
  entry.foreground_group = static_cast<pid_t>(stat[8]);
  entry.threads = static_cast<int>(stat[20]);
  entry.started = static_cast<unsigned long long>(stat[22]);
  entry.resident_bytes = stat[24] * ::sysconf(_SC_PAGESIZE);
  // The state is that of the main thread, which may end before others do.
  entry.ended = (entry.state == 'Z' || entry.state == 'X') && entry.threads <= 1;
  return entry;
}

}  // namespace

Stat::Stat(std::string_view text) {
  const auto open = text.find('(');
  const auto close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos) return;
  name_ = text.substr(open + 1, close - open - 1);
  for (std::string_view rest = text.substr(close + 1); !rest.empty();) {
    const auto begin = std::min(rest.find_first_not_of(" \n"), rest.size());
    const auto end = std::min(rest.find_first_of(" \n", begin), rest.size());
    if (end > begin) fields_.push_back(rest.substr(begin, end - begin));
    rest.remove_prefix(end);
  }
}

long long Stat::operator[](std::size_t field) const {
  return field <= fields() ? parsed<long long>(fields_[field - kFirst]) : 0;
}

std::string read_proc(pid_t process, const std::string& name) {
  return read_beginning(folder_of(process) + name, kBytesOfProcMax).value_or("");
}

std::string link_of(pid_t process, const std::string& name) {
  std::array<char, 4096> target;
  const ssize_t bytes =
      ::readlink((folder_of(process) + name).c_str(), target.data(), target.size());
  return {target.data(), bytes > 0 ? static_cast<std::size_t>(bytes) : 0};
}

std::optional<std::string_view> value_of(std::string_view text, std::string_view name) {
  for (auto at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    if (at != 0 && text[at - 1] != '\n') continue;
    const auto begin = std::min(text.find_first_not_of(" \t", at + name.size()), text.size());
    return text.substr(begin, text.find('\n', begin) - begin);
  }
  return std::nullopt;
}

std::vector<pid_t> threads_of(pid_t process, std::size_t limit) {
  std::vector<pid_t> threads{process};
  if (limit == 1) return threads;
  for_each_entry(folder_of(process) + "task", [&](const dirent& entry) {
    const pid_t thread = std::atoi(entry.d_name);
    if (thread > 0 && thread != process) threads.push_back(thread);
    return threads.size() < limit;
  });
  return threads;
}

bool for_each_process(const std::function<void(const ProcessEntry&)>& visit) {
  bool all = true;
  const bool opened = for_each_entry("/proc", [&](const dirent& item) {
    if (item.d_name[0] < '1' || item.d_name[0] > '9') return true;
    if (const auto entry = find_process(std::atoi(item.d_name))) {
      visit(*entry);
    } else {
      all = errno != EMFILE && errno != ENFILE;
    }
    return all;
  });
  return opened && all;
}

std::optional<std::vector<ProcessEntry>> list_processes() {
  std::vector<ProcessEntry> entries;
  const bool all = for_each_process([&](const ProcessEntry& entry) { entries.push_back(entry); });
  if (!all) return std::nullopt;
  return entries;
}

std::optional<ProcessEntry> find_process(pid_t pid) {
  const auto stat = read_beginning(folder_of(pid) + "stat", kBytesOfProcMax);
  return stat ? parse_entry(*stat) : std::nullopt;
}

Children children_by_pass() {
  Children children;
  static_cast<void>(for_each_process(
      [&](const ProcessEntry& entry) { children.emplace(entry.parent, entry.pid); }));
  return children;
}

int open_children_of_this_process() {
  const std::string self = std::to_string(::getpid());
  return ::open(("/proc/self/task/" + self + "/children").c_str(), O_RDONLY | O_CLOEXEC);
}

std::vector<pid_t> read_children(int list) {
  std::vector<pid_t> children;
  const std::string text = read_range(list, 0, std::string::npos);
  for (std::string_view rest = text; !rest.empty();) {
    const auto end = std::min(rest.find(' '), rest.size());
    if (end > 0) children.push_back(parsed<pid_t>(rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return children;
}

std::vector<pid_t> children_of(pid_t process, pid_t thread) {
  const std::string path = folder_of(process) + "task/" + std::to_string(thread) + "/children";
  const Descriptor list(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return list.number() < 0 ? std::vector<pid_t>() : read_children(list.number());
}

std::vector<pid_t> children_of(pid_t process) {
  std::vector<pid_t> children;
  for (const pid_t thread : threads_of(process)) {
    const std::vector<pid_t> its = children_of(process, thread);
    children.insert(children.end(), its.begin(), its.end());
  }
  return children;
}

std::vector<ProcessEntry> processes_below(const std::vector<pid_t>& roots, std::size_t limit) {
  std::vector<ProcessEntry> found;
  const bool listed = Descriptor(open_children_of_this_process()).number() >= 0;
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

// The owner of /proc/PID is root for a process that has changed its user. The line is
// `Uid: REAL EFFECTIVE SAVED FILESYSTEM`.
bool any_process_below_runs_as(uid_t uid) {
  const auto below = processes_below({::getpid()}, kProcessesBelowMax);
  return std::any_of(below.begin(), below.end(), [&](const ProcessEntry& process) {
    const std::string status = read_proc(process.pid, "status");
    const auto users = value_of(status, "Uid:");
    return process.pid != ::getpid() && users &&
           parsed<uid_t>(users->substr(std::min(users->find('\t') + 1, users->size()))) == uid;
  });
}

std::string environment_of(pid_t pid, const std::string& variable) {
  const auto block = read_beginning(folder_of(pid) + "environ", kEnvironmentBytesMax);
  const std::string text = '\0' + block.value_or("");
  const std::string wanted = '\0' + variable + '=';
  const auto at = text.find(wanted);
  if (at == std::string::npos) return {};
  const auto begin = at + wanted.size();
  return text.substr(begin, text.find('\0', begin) - begin);
}

}  // namespace ddprun
