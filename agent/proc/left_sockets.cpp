#include "agent/proc/left_sockets.hpp"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <memory>

#include "base/random_uuid.hpp"

namespace ddprun {

namespace {

constexpr std::string_view kUnfinished = ".new";

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

}  // namespace

void remove_if_refused(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return;
  ::memcpy(address.sun_path, path.data(), path.size());
  // Of another type than ours: a live one answers EPROTOTYPE, and its process is not woken up.
  const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket < 0) return;
  const auto* name = reinterpret_cast<const sockaddr*>(&address);
  const bool refused = ::connect(socket, name, sizeof(address)) != 0 && errno == ECONNREFUSED;
  if (refused) ::unlink(path.c_str());
  ::close(socket);
}

bool remove_if_unread(const std::string& path) {
  struct stat facts = {};
  if (::lstat(path.c_str(), &facts) != 0) return errno != ENOENT;
  if (!S_ISFIFO(facts.st_mode)) return true;
  const int opened = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
  if (opened >= 0) {
    ::close(opened);
    return true;
  }
  return errno != ENXIO || ::unlink(path.c_str()) != 0;
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
  const std::unique_ptr<DIR, int (*)(DIR*)> list(::opendir(directory.c_str()), ::closedir);
  if (list == nullptr) return;
  while (const dirent* item = ::readdir(list.get())) {
    const std::string name = item->d_name;
    const bool is_left = name.starts_with(begin) && is_left_unfinished(name);
    if (is_left) static_cast<void>(remove_if_unread(directory + "/" + name));
  }
}

// Not of the form PID-NONCE.SUFFIX.new: one of another namespace may be about to listen.
void remove_left_sockets(const std::string& directory, pid_t owner) {
  const int opened =
      ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (opened < 0) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> list(::fdopendir(opened), ::closedir);
  if (list == nullptr) {
    ::close(opened);
    return;
  }
  if (!is_private(opened)) return;
  const std::string begin = std::to_string(owner) + "-";
  while (const dirent* item = ::readdir(list.get())) {
    const std::string name = item->d_name;
    if (!name.starts_with(begin)) continue;
    if (name.ends_with(".sock") || name.ends_with(".link")) {
      remove_if_refused(directory + "/" + name);
      remove_about(directory + "/" + name);
    } else if (name.ends_with(kTimersSuffix)) {
      static_cast<void>(remove_if_unread(directory + "/" + name));
    }
  }
}

}  // namespace ddprun
