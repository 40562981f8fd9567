#include "agent/proc/progress.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>

#include "agent/proc/connections.hpp"
#include "agent/proc/process_facts.hpp"
#include "agent/proc/process_table.hpp"

namespace ddprun {
namespace {

// Of one process; others are not looked at.
constexpr std::size_t kThreadsLookedAtMax = 1024;
// Descriptors of one wait that are looked at.
constexpr std::uint64_t kPolledMax = 64;

struct SystemCall {
  long number = -1;
  std::array<std::uint64_t, 3> arguments{};
};

bool is_any(long number, std::initializer_list<long> of) {
  return std::find(of.begin(), of.end(), number) != of.end();
}

// Terminals and pseudoterminals, not the side that plays the user (ptmx), nor serial lines.
bool is_user_terminal(pid_t process, std::uint64_t descriptor) {
  struct stat facts = {};
  const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(descriptor);
  if (::stat(path.c_str(), &facts) != 0 || !S_ISCHR(facts.st_mode)) return false;
  const unsigned type = major(facts.st_rdev);
  const unsigned which = minor(facts.st_rdev);
  return (type >= 136 && type <= 143) || (type == 4 && which < 64) || (type == 5 && which < 2);
}

template <typename Item, std::size_t kCount>
std::size_t read_memory_of(pid_t process, std::uint64_t from, std::array<Item, kCount>& items,
                           std::uint64_t count) {
  iovec ours{items.data(), std::min<std::uint64_t>(count, kCount) * sizeof(Item)};
  iovec its{reinterpret_cast<void*>(from), ours.iov_len};  // NOLINT: an address elsewhere
  const ssize_t bytes = ::process_vm_readv(process, &ours, 1, &its, 1, 0);
  return bytes > 0 ? static_cast<std::size_t>(bytes) / sizeof(Item) : 0;
}

bool polls_terminal(pid_t process, const SystemCall& call) {
  std::array<pollfd, kPolledMax> polled{};
  const std::size_t count = read_memory_of(process, call.arguments[0], polled, call.arguments[1]);
  return std::any_of(polled.begin(), polled.begin() + count, [process](const pollfd& one) {
    const bool reads = one.fd >= 0 && (one.events & POLLIN) != 0;
    return reads && is_user_terminal(process, static_cast<std::uint64_t>(one.fd));
  });
}

bool selects_terminal(pid_t process, const SystemCall& call) {
  constexpr std::uint64_t kBits = 64;
  std::array<std::uint64_t, FD_SETSIZE / kBits> words{};
  if (call.arguments[1] == 0) return false;
  const std::uint64_t descriptors = std::min<std::uint64_t>(call.arguments[0], FD_SETSIZE);
  const std::uint64_t known =
      kBits * read_memory_of(process, call.arguments[1], words, (descriptors + kBits - 1) / kBits);
  std::uint64_t looked = 0;
  for (std::uint64_t at = 0; at < std::min(descriptors, known) && looked < kPolledMax; ++at) {
    if (((words[at / kBits] >> (at % kBits)) & 1U) == 0) continue;
    ++looked;
    if (is_user_terminal(process, at)) return true;
  }
  return false;
}

// `tfd:        0 events:       19 data: ...`, a line for each descriptor.
bool epoll_has_terminal(pid_t process, const SystemCall& call) {
  std::ifstream file("/proc/" + std::to_string(process) + "/fdinfo/" +
                     std::to_string(call.arguments[0]));
  std::string line;
  for (std::uint64_t looked = 0; looked < kPolledMax && std::getline(file, line);) {
    unsigned descriptor = 0;
    unsigned events = 0;
    if (std::sscanf(line.c_str(), "tfd: %u events: %x", &descriptor, &events) != 2) continue;
    ++looked;
    if ((events & EPOLLIN) != 0 && is_user_terminal(process, descriptor)) return true;
  }
  return false;
}

/// Whether that thread reads a terminal, or waits for one, perhaps among others.
bool waits_for_terminal(pid_t process, pid_t thread) {
  const std::string text = read_proc(process, "task/" + std::to_string(thread) + "/syscall");
  SystemCall call;
  unsigned long long first = 0;
  unsigned long long second = 0;
  if (std::sscanf(text.c_str(), "%ld %llx %llx", &call.number, &first, &second) != 3) return false;
  call.arguments = {first, second};
  if (is_any(call.number, {SYS_read, SYS_readv})) return is_user_terminal(process, first);
#ifdef SYS_poll
  if (call.number == SYS_poll) return polls_terminal(process, call);
#endif
  if (call.number == SYS_ppoll) return polls_terminal(process, call);
#ifdef SYS_select
  if (call.number == SYS_select) return selects_terminal(process, call);
#endif
  if (call.number == SYS_pselect6) return selects_terminal(process, call);
#ifdef SYS_epoll_wait
  if (call.number == SYS_epoll_wait) return epoll_has_terminal(process, call);
#endif
  if (call.number == SYS_epoll_pwait) return epoll_has_terminal(process, call);
#ifdef SYS_epoll_pwait2
  if (call.number == SYS_epoll_pwait2) return epoll_has_terminal(process, call);
#endif
  return false;
}

using Tree = std::vector<pid_t>;

/// utime and stime: of a process with all its threads.
Duration cpu_in(const Stat& stat) {
  return std::chrono::milliseconds((stat[14] + stat[15]) * 1000 / ::sysconf(_SC_CLK_TCK));
}

/// The number behind `name` at the beginning of a line; 0: there is none.
std::uint64_t counter_in(std::string_view text, std::string_view name) {
  const auto value = value_of(text, name);
  return value ? std::strtoull(std::string(*value).c_str(), nullptr, 10) : 0;
}

Tree tree_of(pid_t leader, const Children& children) {
  Tree tree{leader};
  // A table that was not read at one moment may have a circle.
  for (std::size_t at = 0; at < tree.size() && at <= children.size(); ++at) {
    const auto [from, to] = children.equal_range(tree[at]);
    for (auto child = from; child != to; ++child) tree.push_back(child->second);
  }
  return tree;
}

// Programs that this process has started to read stacks are no debuggers.
bool is_debugged(pid_t process) {
  const auto tracer = static_cast<pid_t>(counter_in(read_proc(process, "status"), "TracerPid:"));
  if (tracer == 0) return false;
  const auto known = find_process(tracer);
  return !known || known->parent != ::getpid();
}

/// Differs when a wait has ended and another one follows: the kernel counts the switches, and where
/// it is told to, the time of the waits.
std::uint64_t io_wait_of(pid_t process, const std::string& task, const Stat& stat) {
  const std::string status = read_proc(process, task + "/status");
  return std::hash<std::string>()(task) + static_cast<std::uint64_t>(stat[42]) +
         counter_in(status, "voluntary_ctxt_switches:") +
         counter_in(status, "nonvoluntary_ctxt_switches:");
}

void look_at_threads(pid_t process, CloseLook& look) {
  for (const pid_t thread : threads_of(process, kThreadsLookedAtMax)) {
    const std::string task = "task/" + std::to_string(thread);
    const std::string text = read_proc(process, task + "/stat");
    const Stat stat(text);
    if (stat.state() == 'D') look.io_wait += io_wait_of(process, task, stat);
    if (stat.state() != 'S' || look.for_user) continue;
    look.for_user = waits_for_terminal(process, thread);
  }
}

}  // namespace

// A kernel without CONFIG_PROC_CHILDREN lists none: then the leader alone is looked at.
bool rank_waits_for_terminal(pid_t leader, Threads which) {
  std::vector<pid_t> tree{leader};
  for (std::size_t at = 0; at < tree.size(); ++at) {
    const pid_t process = tree[at];
    const bool main_only = which == Threads::kMain;
    for (const pid_t thread : threads_of(process, main_only ? 1 : kThreadsLookedAtMax)) {
      if (waits_for_terminal(process, thread)) return true;
      for (const pid_t child : children_of(process, thread)) {
        if (tree.size() < kProcessesOfRankMax) tree.push_back(child);
      }
    }
  }
  return false;
}

Duration cpu_of(pid_t process) {
  return cpu_in(Stat(read_proc(process, "stat")));
}

RankProgress progress_of(const std::vector<pid_t>& processes) {
  RankProgress rank;
  for (const pid_t process : processes) {
    const std::string text = read_proc(process, "stat");
    const Stat stat(text);
    rank.cpu += cpu_in(stat);
    rank.faults += static_cast<std::uint64_t>(stat[10]);
    rank.waited_faults += static_cast<std::uint64_t>(stat[12]);
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
  const Children children = children_by_pass();
  std::vector<RankProgress> ranks;
  for (const pid_t leader : leaders) ranks.push_back(progress_of(tree_of(leader, children)));
  return ranks;
}

std::vector<RankProgress> read_progress_closely(const std::vector<pid_t>& leaders,
                                                std::uint16_t store_port) {
  const Children children = children_by_pass();
  const TcpBytes bytes(store_port);
  std::vector<RankProgress> ranks;
  for (const pid_t leader : leaders) {
    const Tree tree = tree_of(leader, children);
    RankProgress& rank = ranks.emplace_back(progress_of(tree));
    CloseLook& look = rank.close.emplace();
    for (const pid_t process : tree) {
      look.network += bytes.of(process);
      look.for_user = look.for_user || is_debugged(process);
      look_at_threads(process, look);
    }
  }
  return ranks;
}

}  // namespace ddprun
