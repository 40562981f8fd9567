#include "agent/proc/leftovers.hpp"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>

#include "agent/proc/files.hpp"
#include "base/descriptor.hpp"
#include "base/random_uuid.hpp"

namespace ddprun {

namespace {

constexpr std::string_view kUnfinished = ".new";
constexpr std::size_t kNamesMax = 4096;

bool is_private(int directory) {
  struct stat facts = {};
  return ::fstat(directory, &facts) == 0 && facts.st_uid == ::geteuid() &&
         (facts.st_mode & 077) == 0;
}

// A control socket has the name of its run in a file beside it.
void remove_about(const std::string& socket) {
  if (::access(socket.c_str(), F_OK) == 0) return;
  ::unlink((socket.substr(0, socket.rfind('.')) + ".run").c_str());
}

/// None: there are more than kNamesMax, which other users may have made.
std::optional<std::set<std::string>> names_in(const std::string& directory) {
  std::set<std::string> names;
  std::size_t looked = 0;
  for_each_entry(directory, [&](const dirent& entry) {
    if (entry.d_type == DT_REG) names.insert(entry.d_name);
    return ++looked <= kNamesMax;
  });
  if (looked > kNamesMax) return std::nullopt;
  return names;
}

/// A process that opens the file meanwhile waits for the lease to end, and the kernel signals this
/// one: with SIGIO, which would end it, if not told to use a signal that is ignored.
bool is_open_elsewhere(int file) {
  if (::fcntl(file, F_SETSIG, SIGURG) != 0) return true;
  return ::fcntl(file, F_SETLEASE, F_WRLCK) != 0;
}

}  // namespace

std::optional<sockaddr_un> unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return std::nullopt;
  ::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

void remove_if_refused(const std::string& path) {
  const auto address = unix_address(path);
  if (!address) return;
  // Of another type than ours: a live one answers EPROTOTYPE, and its process is not woken up.
  const Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket.number() < 0) return;
  const auto* name = reinterpret_cast<const sockaddr*>(&*address);
  const bool answers = ::connect(socket.number(), name, sizeof(*address)) == 0;
  if (!answers && errno == ECONNREFUSED) ::unlink(path.c_str());
}

bool remove_if_unread(const std::string& path) {
  struct stat facts = {};
  if (::lstat(path.c_str(), &facts) != 0) return errno != ENOENT;
  if (!S_ISFIFO(facts.st_mode)) return true;
  const Descriptor pipe(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  return pipe.number() >= 0 || errno != ENXIO || ::unlink(path.c_str()) != 0;
}

std::string unfinished_pipe(const std::string& path) {
  return path + "." + std::to_string(::getpid()) + "-" + random_uuid().substr(0, 8) +
         std::string(kUnfinished);
}

bool is_left_unfinished(std::string_view name) {
  if (!name.ends_with(kUnfinished)) return false;
  name.remove_suffix(kUnfinished.size());
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return false;
  pid_t owner = 0;
  const char* const end = name.data() + name.size();
  const auto read = std::from_chars(name.data() + dot + 1, end, owner);
  const bool is_pid = read.ec == std::errc() && owner > 0 && read.ptr != end && *read.ptr == '-';
  return is_pid && ::kill(owner, 0) != 0 && errno == ESRCH;
}

// One of another PID namespace may look as if its process had ended, but is read by then.
void remove_unfinished_pipes(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const std::string begin = path.substr(slash == std::string::npos ? 0 : slash + 1) + ".";
  for_each_entry(directory, [&](const dirent& entry) {
    const std::string name = entry.d_name;
    const bool is_left = name.starts_with(begin) && is_left_unfinished(name);
    if (is_left) static_cast<void>(remove_if_unread(directory + "/" + name));
    return true;
  });
}

// Not of the form PID-NONCE.SUFFIX.new: one of another namespace may be about to listen.
void remove_left_sockets(const std::string& directory, pid_t owner) {
  const int opened =
      ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (opened < 0) return;
  const bool ours = is_private(opened);
  const std::string begin = std::to_string(owner) + "-";
  for_each_entry(opened, [&](const dirent& entry) {
    const std::string name = entry.d_name;
    if (!ours) return false;
    if (!name.starts_with(begin)) return true;
    if (name.ends_with(".sock") || name.ends_with(".link")) {
      remove_if_refused(directory + "/" + name);
      remove_about(directory + "/" + name);
    } else if (name.ends_with(kTimersSuffix)) {
      static_cast<void>(remove_if_unread(directory + "/" + name));
    }
    return true;
  });
}

SharedNames::SharedNames(std::string directory)
    : directory_(std::move(directory)), before_(names_in(directory_)) {}

SharedNames::Left SharedNames::left() const {
  Left left;
  const auto now = names_in(directory_);
  if (!before_ || !now) return left;
  for (const std::string& name : *now) {
    if (before_->contains(name)) continue;
    const std::string path = directory_ + "/" + name;
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (file.number() < 0) continue;
    struct stat facts = {};
    const bool is_own = ::fstat(file.number(), &facts) == 0 && facts.st_uid == ::geteuid();
    if (is_own && !is_open_elsewhere(file.number())) {
      constexpr std::int64_t kBlock = 512;
      left.names.push_back(name);
      left.bytes += facts.st_blocks * kBlock;
    }
  }
  return left;
}

}  // namespace ddprun
