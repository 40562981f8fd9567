#include "agent/proc/progress.hpp"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>

#include "agent/proc/process_facts.hpp"
#include "agent/proc/process_table.hpp"
#include "agent/proc/tcp_bytes.hpp"
#include "agent/proc/terminal_wait.hpp"

namespace ddprun {
namespace {

// Of one process; others are not looked at.
constexpr int kThreadsLookedAtMax = 1024;

using Tree = std::vector<pid_t>;

struct Table {
  std::multimap<pid_t, pid_t> children;
  std::unordered_map<pid_t, pid_t> parents;
};

/// What /proc/PID/stat counts of a process with all its threads, or of one thread.
struct Counted {
  char state = '?';
  unsigned long long faults = 0;
  unsigned long long waited_faults = 0;
  unsigned long long user = 0;
  unsigned long long system = 0;
  unsigned long long waited = 0;  // for I/O: 0 where the kernel does not count that
};

// Fields 3, 10, 12, 14, 15 and 42; the name before them may hold anything.
Counted counted_in(const std::string& stat) {
  Counted counted;
  const auto close = stat.rfind(')');
  if (close == std::string::npos) return counted;
  constexpr const char* kFields =
      ") %c %*d %*d %*d %*d %*d %*u %llu %*u %llu %*u %llu %llu %*d %*d %*d %*d %*d %*d %*u %*u "
      "%*d %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*d %*d %*u %*u %llu";
  std::sscanf(stat.c_str() + close, kFields, &counted.state, &counted.faults,
              &counted.waited_faults, &counted.user, &counted.system, &counted.waited);
  return counted;
}

Duration cpu_in(const Counted& counted) {
  const long ticks = ::sysconf(_SC_CLK_TCK);
  return std::chrono::milliseconds((counted.user + counted.system) * 1000 /
                                   static_cast<unsigned long>(ticks));
}

/// The number behind `name` at the beginning of a line; 0: there is none.
std::uint64_t counter_in(std::string_view text, std::string_view name) {
  auto at = text.find(name);
  while (at != std::string_view::npos && at != 0 && text[at - 1] != '\n') {
    at = text.find(name, at + 1);
  }
  if (at == std::string_view::npos) return 0;
  return std::strtoull(std::string(text.substr(at + name.size(), 24)).c_str(), nullptr, 10);
}

Table read_table() {
  Table table;
  const auto all = list_processes();
  if (!all) return table;
  for (const ProcessEntry& entry : *all) {
    table.children.emplace(entry.parent, entry.pid);
    table.parents.emplace(entry.pid, entry.parent);
  }
  return table;
}

Tree tree_of(pid_t leader, const Table& table) {
  Tree tree{leader};
  // A table that was not read at one moment may have a circle.
  for (std::size_t at = 0; at < tree.size() && at <= table.children.size(); ++at) {
    const auto [from, to] = table.children.equal_range(tree[at]);
    for (auto child = from; child != to; ++child) tree.push_back(child->second);
  }
  return tree;
}

// Programs that this process has started to read stacks are no debuggers.
bool is_debugged(pid_t process, const Table& table) {
  const auto tracer = static_cast<pid_t>(counter_in(read_proc(process, "status"), "TracerPid:"));
  if (tracer == 0) return false;
  const auto known = table.parents.find(tracer);
  return known == table.parents.end() || known->second != ::getpid();
}

/// Differs when a wait has ended and another one follows: the kernel counts the switches.
std::uint64_t io_wait_of(pid_t process, const std::string& task, const Counted& counted) {
  const std::string status = read_proc(process, (task + "/status").c_str());
  return std::hash<std::string>()(task) + counted.waited +
         counter_in(status, "voluntary_ctxt_switches:") +
         counter_in(status, "nonvoluntary_ctxt_switches:");
}

void look_at_threads(pid_t process, CloseLook& look) {
  std::error_code why;
  const std::string folder = "/proc/" + std::to_string(process) + "/task";
  std::filesystem::directory_iterator entry(folder, why);
  int looked = 0;
  for (const std::filesystem::directory_iterator end;
       !why && entry != end && ++looked <= kThreadsLookedAtMax; entry.increment(why)) {
    const std::string name = entry->path().filename().string();
    const std::string task = "task/" + name;
    const Counted counted = counted_in(read_proc(process, (task + "/stat").c_str()));
    if (counted.state == 'D') look.io_wait += io_wait_of(process, task, counted);
    if (counted.state != 'S' || look.for_user) continue;
    look.for_user = waits_for_terminal(process, std::atoi(name.c_str()));
  }
}

}  // namespace

Duration cpu_of(pid_t process) {
  return cpu_in(counted_in(read_proc(process, "stat")));
}

RankProgress progress_of(const std::vector<pid_t>& processes) {
  RankProgress rank;
  for (const pid_t process : processes) {
    const Counted counted = counted_in(read_proc(process, "stat"));
    rank.cpu += cpu_in(counted);
    rank.faults += counted.faults;
    rank.waited_faults += counted.waited_faults;
    const std::string io = read_proc(process, "io");
    rank.read += counter_in(io, "rchar:");
    rank.written += counter_in(io, "wchar:");
    rank.storage += counter_in(io, "read_bytes:") + counter_in(io, "write_bytes:");
    // Not a count: one process that replaces another is progress, too.
    rank.processes = rank.processes * 31 + static_cast<std::uint64_t>(process);
  }
  return rank;
}

std::vector<RankProgress> read_progress(const std::vector<pid_t>& leaders) {
  const Table table = read_table();
  std::vector<RankProgress> ranks;
  for (const pid_t leader : leaders) ranks.push_back(progress_of(tree_of(leader, table)));
  return ranks;
}

std::vector<RankProgress> read_progress_closely(const std::vector<pid_t>& leaders,
                                                std::uint16_t store_port) {
  const Table table = read_table();
  const TcpBytes connections(store_port);
  std::vector<RankProgress> ranks;
  for (const pid_t leader : leaders) {
    const Tree tree = tree_of(leader, table);
    RankProgress& rank = ranks.emplace_back(progress_of(tree));
    CloseLook& look = rank.close.emplace();
    for (const pid_t process : tree) {
      look.network += connections.of(process);
      look.for_user = look.for_user || is_debugged(process, table);
      look_at_threads(process, look);
    }
  }
  return ranks;
}

}  // namespace ddprun
