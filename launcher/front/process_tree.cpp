#include "launcher/front/process_tree.hpp"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>

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

}  // namespace ddprun::front
