#include "launcher/front/supervisor.hpp"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/newest_pid.hpp"
#include "base/pipe_end.hpp"

namespace ddprun::front {

namespace {

// More processes than this are not seen until some of them are gone. Untouched pages cost nothing.
constexpr std::size_t kProcessesMax = 65536;

// The layout of getdents64(2), which the C library does not declare without a DIR (that allocates).
struct Entry {
  std::uint64_t inode;
  std::int64_t offset;
  std::uint16_t length;
  std::uint8_t type;
  char name[1];
};

bool is_digit(char character) {
  return character >= '0' && character <= '9';
}

int take_number(std::string_view& text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  int number = 0;
  for (; !text.empty() && is_digit(text.front()); text.remove_prefix(1)) {
    number = number * 10 + (text.front() - '0');
  }
  return number;
}

// `PID (NAME) STATE PARENT GROUP SESSION ...`; the name may hold anything, brackets too.
bool parse(std::string_view stat, ProcessSeen& seen) {
  const auto open = stat.find('(');
  const auto close = stat.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos) return false;
  if (close < open || close + 2 >= stat.size()) return false;
  const std::string_view name = stat.substr(open + 1, close - open - 1);
  seen = {};
  std::copy_n(name.begin(), std::min(name.size(), seen.name.size() - 1), seen.name.begin());
  seen.state = stat[close + 2];
  std::string_view numbers = stat.substr(close + 3);
  seen.parent = take_number(numbers);
  seen.group = take_number(numbers);
  seen.session = take_number(numbers);
  seen.pid = take_number(stat);
  return seen.pid > 0;
}

bool read_stat(int proc, const char* pid, ProcessSeen& seen) {
  std::array<char, 32> path{};
  const std::size_t length = ::strnlen(pid, path.size() - sizeof "/stat");
  std::copy_n(pid, length, path.begin());
  std::copy_n("/stat", sizeof "/stat", path.begin() + length);
  const int file = ::openat(proc, path.data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;    // gone meanwhile
  std::array<char, 256> text{};  // what is asked for stands at its beginning
  const ssize_t bytes = ::read(file, text.data(), text.size());
  ::close(file);
  return bytes > 0 && parse({text.data(), static_cast<std::size_t>(bytes)}, seen);
}

}  // namespace

bool Spared::covers(const ProcessSeen& child, pid_t session) const {
  if (own_session && child.session == session) return true;
  return std::find(children.begin(), children.begin() + count, child.pid) !=
         children.begin() + count;
}

bool read_process(pid_t pid, ProcessSeen& seen) {
  std::array<char, 20> path{"/proc/"};
  std::to_chars(path.begin() + sizeof "/proc/" - 1, path.end() - 1, pid);
  return read_stat(AT_FDCWD, path.data(), seen);
}

ProcessTree::ProcessTree() {
  void* memory = ::mmap(nullptr, kProcessesMax * sizeof(ProcessSeen), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory != MAP_FAILED) seen_ = static_cast<ProcessSeen*>(memory);
}

ProcessTree::~ProcessTree() {
  if (seen_ != nullptr) ::munmap(seen_, kProcessesMax * sizeof(ProcessSeen));
}

bool ProcessTree::read(const Spared& spared) {
  count_ = 0;
  if (seen_ == nullptr || !list()) return false;
  const auto by_pid = [](const ProcessSeen& one, const ProcessSeen& other) {
    return one.pid < other.pid;
  };
  if (!std::is_sorted(begin(), end(), by_pid)) std::sort(seen_, seen_ + count_, by_pid);
  mark(spared);
  return true;
}

bool ProcessTree::list() {
  const int proc = ::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (proc < 0) return false;
  alignas(Entry) std::array<char, 8192> buffer{};
  long bytes = 0;
  while ((bytes = ::syscall(SYS_getdents64, proc, buffer.data(), buffer.size())) > 0) {
    take_names(proc, buffer.data(), bytes);
  }
  ::close(proc);
  return bytes == 0 && count_ > 0;
}

void ProcessTree::take_names(int proc, const char* entries, long bytes) {
  for (long at = 0; at < bytes && count_ < kProcessesMax;) {
    const char* entry = entries + at;
    std::uint16_t length = 0;
    ::memcpy(&length, entry + offsetof(Entry, length), sizeof length);
    const char* name = entry + offsetof(Entry, name);
    if (is_digit(*name) && read_stat(proc, name, seen_[count_])) ++count_;
    at += length;
  }
}

// In passes: a child's pid may be lower than its parent's.
void ProcessTree::mark(const Spared& spared) {
  const pid_t self = ::getpid();
  const pid_t session = ::getsid(0);
  bool more = true;
  while (more) {
    more = false;
    for (std::size_t at = 0; at < count_; ++at) {
      ProcessSeen& seen = seen_[at];
      if (seen.below) continue;
      const ProcessSeen* parent = find(seen.parent);
      seen.below =
          seen.parent == self ? !spared.covers(seen, session) : parent != nullptr && parent->below;
      more = more || seen.below;
    }
  }
}

const ProcessSeen* ProcessTree::find(pid_t pid) const {
  const auto* found = std::lower_bound(
      begin(), end(), pid, [](const ProcessSeen& seen, pid_t wanted) { return seen.pid < wanted; });
  return found != end() && found->pid == pid ? found : nullptr;
}

namespace {

constexpr std::chrono::milliseconds kPassInterval{10};

std::chrono::nanoseconds since_boot() {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

void wait_for_an_end() {
  sigset_t ended;
  ::sigemptyset(&ended);
  ::sigaddset(&ended, SIGCHLD);
  constexpr timespec kLimit{0, std::chrono::nanoseconds(kPassInterval).count()};
  ::sigtimedwait(&ended, nullptr, &kLimit);
}

enum class Killed { kButPipeEnds, kAll };

// Returns how many are alive. Groups of this process's own session may hold strangers; every other
// session was begun by something below, so that its groups hold nothing else.
int kill_below(const ProcessTree& tree, Swept& swept, Killed killed) {
  const pid_t session = ::getsid(0);
  int alive = 0;
  for (const ProcessSeen& seen : tree) {
    if (!seen.below) continue;
    if (!seen.ended()) {
      if (static_cast<std::size_t>(alive) < swept.named.size()) {
        swept.named[static_cast<std::size_t>(alive)] = seen;
      }
      ++alive;
    }
    if (killed == Killed::kButPipeEnds) {
      if (!ends_with_its_pipe(seen.pid, seen.parent)) ::kill(seen.pid, SIGKILL);
      continue;
    }
    if (seen.session != session && seen.session > 0 && seen.group > 1) {
      ::kill(-seen.group, SIGKILL);
    }
    ::kill(seen.pid, SIGKILL);
  }
  return alive;
}

// Children that are forked, or come here, faster than pictures are taken.
void kill_new_children(NewPids& forked, const Spared& spared, Killed killed) {
  const pid_t self = ::getpid();
  const pid_t session = ::getsid(0);
  pid_t last = 0;
  forked.follow([&](pid_t pid) {
    ProcessSeen seen;
    if (!read_process(pid, seen) || seen.parent != self || spared.covers(seen, session)) {
      return false;
    }
    const bool is_spared = killed == Killed::kButPipeEnds && ends_with_its_pipe(pid, self);
    if (!is_spared) ::kill(pid, SIGKILL);
    return std::exchange(last, pid) != pid;
  });
}

int count_below(const ProcessTree& tree) {
  int count = 0;
  for (const ProcessSeen& seen : tree) count += seen.below ? 1 : 0;
  return count;
}

/// Reaps children that have ended. False when there is no child at all.
bool reap_ended(Swept& swept, bool after_kill) {
  for (;;) {
    int status = 0;
    const pid_t ended = ::waitpid(-1, &status, WNOHANG | __WALL);
    if (ended == 0) return true;
    if (ended < 0 && errno != EINTR) return false;
    if (ended < 0) continue;
    ++swept.ended;
    if (after_kill && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) ++swept.killed;
  }
}

}  // namespace

Swept sweep(const Spared& spared, std::chrono::milliseconds limit,
            std::span<const Cgroup> cgroups) {
  Swept swept;
  ProcessTree tree;
  const auto deadline = since_boot() + limit;
  const auto pipe_ends_until = since_boot() + kPipeEndWait;
  Killed killed = Killed::kButPipeEnds;
  bool after_kill = false;
  while (reap_ended(swept, after_kill)) {
    NewPids forked;
    const bool seen = tree.read(spared);
    const bool none = seen && count_below(tree) == 0;
    if (none && killed == Killed::kAll) break;
    // What forks faster than pictures are taken is not seen, and does not escape this.
    if (killed == Killed::kButPipeEnds && (none || since_boot() >= pipe_ends_until)) {
      killed = Killed::kAll;
      for (const Cgroup& cgroup : cgroups) cgroup.kill();
    }
    const int alive = seen ? kill_below(tree, swept, killed) : 0;
    kill_new_children(forked, spared, killed);
    after_kill = true;
    if (since_boot() > deadline) {
      swept.left = alive;
      break;
    }
    wait_for_an_end();
  }
  return swept;
}

}  // namespace ddprun::front
