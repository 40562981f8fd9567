#include "agent/proc/progress.hpp"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <map>
#include <string>

#include "agent/proc/process_facts.hpp"
#include "agent/proc/process_table.hpp"

namespace ddprun {
namespace {

using Children = std::multimap<pid_t, pid_t>;

std::uint64_t written_by(pid_t process) {
  const std::string io = read_proc(process, "io");
  const auto at = io.find("wchar: ");
  unsigned long long bytes = 0;
  if (at != std::string::npos) std::sscanf(io.c_str() + at, "wchar: %llu", &bytes);
  return bytes;
}

RankProgress of_tree(pid_t leader, const Children& children) {
  RankProgress rank;
  std::vector<pid_t> tree{leader};
  // A table that was not read at one moment may have a circle.
  for (std::size_t at = 0; at < tree.size() && at <= children.size(); ++at) {
    rank.cpu += cpu_of(tree[at]);
    rank.written += written_by(tree[at]);
    // Not a count: one process that replaces another is progress, too.
    rank.processes = rank.processes * 31 + static_cast<std::uint64_t>(tree[at]);
    const auto [from, to] = children.equal_range(tree[at]);
    for (auto child = from; child != to; ++child) tree.push_back(child->second);
  }
  return rank;
}

}  // namespace

// Fields 14 and 15 of /proc/PID/stat, in ticks of sysconf(_SC_CLK_TCK).
Duration cpu_of(pid_t process) {
  const std::string stat = read_proc(process, "stat");
  const auto close = stat.rfind(')');
  unsigned long long user = 0;
  unsigned long long system = 0;
  constexpr const char* kFields = ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu";
  const bool found =
      close != std::string::npos && std::sscanf(stat.c_str() + close, kFields, &user, &system) == 2;
  if (!found) return {};
  const long ticks = ::sysconf(_SC_CLK_TCK);
  return std::chrono::milliseconds((user + system) * 1000 / static_cast<unsigned long>(ticks));
}

std::vector<RankProgress> read_progress(const std::vector<pid_t>& leaders) {
  Children children;
  if (const auto all = list_processes()) {
    for (const ProcessEntry& entry : *all) children.emplace(entry.parent, entry.pid);
  }
  std::vector<RankProgress> ranks;
  for (const pid_t leader : leaders) ranks.push_back(of_tree(leader, children));
  return ranks;
}

}  // namespace ddprun
