#include "agent/proc/terminal_wait.hpp"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <system_error>
#include <vector>

#include "agent/proc/process_facts.hpp"

namespace ddprun {
namespace {

// Descriptors of one wait that are looked at.
constexpr std::uint64_t kPolledMax = 64;
// Threads of one process.
constexpr std::size_t kThreadsMax = 1024;

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

std::vector<pid_t> threads_of(pid_t process, Threads which) {
  std::vector<pid_t> threads{process};
  if (which == Threads::kMain) return threads;
  std::error_code why;
  std::filesystem::directory_iterator entry("/proc/" + std::to_string(process) + "/task", why);
  for (const std::filesystem::directory_iterator end;
       !why && entry != end && threads.size() < kThreadsMax; entry.increment(why)) {
    const pid_t thread = std::atoi(entry->path().filename().c_str());
    if (thread != process) threads.push_back(thread);
  }
  return threads;
}

// That a kernel without CONFIG_PROC_CHILDREN lists none is no error: the leader is looked at.
void add_children(pid_t process, pid_t thread, std::vector<pid_t>& tree) {
  std::ifstream list("/proc/" + std::to_string(process) + "/task/" + std::to_string(thread) +
                     "/children");
  for (pid_t child = 0; tree.size() < kProcessesOfRankMax && list >> child;) tree.push_back(child);
}

}  // namespace

bool rank_waits_for_terminal(pid_t leader, Threads which) {
  std::vector<pid_t> tree{leader};
  for (std::size_t at = 0; at < tree.size(); ++at) {
    const pid_t process = tree[at];
    for (const pid_t thread : threads_of(process, which)) {
      if (waits_for_terminal(process, thread)) return true;
      add_children(process, thread, tree);
    }
  }
  return false;
}

bool waits_for_terminal(pid_t process, pid_t thread) {
  const std::string task = "task/" + std::to_string(thread) + "/syscall";
  const std::string text = read_proc(process, task.c_str());
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

}  // namespace ddprun
