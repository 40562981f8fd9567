#include "agent/control/directory.hpp"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

#include "agent/proc/files.hpp"
#include "agent/proc/leftovers.hpp"
#include "base/descriptor.hpp"
#include "base/printable.hpp"
#include "base/random_uuid.hpp"

namespace ddprun::control {

namespace {

// Connections that wait in the kernel's queue; a client beyond that waits, or gives up.
constexpr int kBacklog = 64;
// A client reads so much of what a silent ddprun has written about itself.
constexpr std::size_t kAboutBytesMax = 64 * 1024;
constexpr const char* kSuffix = ".sock";
// A socket gets its name when it listens: who finds one that refuses may remove it.
constexpr const char* kUnfinished = ".new";
// Names beside the directory that may be another one of this user: looked at in about 0.1 s.
constexpr int kOthersMax = 65'536;
// Beside the socket, with the name of the run.
constexpr const char* kAbout = ".run";

std::string about_path(const std::string& path) {
  return path.substr(0, path.rfind('.')) + kAbout;
}

pid_t owner_in(const std::string& name) {
  pid_t owner = 0;
  const auto read = std::from_chars(name.data(), name.data() + name.size(), owner);
  return read.ec == std::errc() && owner > 0 && *read.ptr == '-' ? owner : 0;
}

bool has_ended(pid_t owner) {
  return owner > 0 && ::kill(owner, 0) != 0 && errno == ESRCH;
}

/// Left by a ddprun that was killed before its socket listened, or without its guard.
bool is_about_none(const std::string& directory, const std::string& name) {
  if (!name.ends_with(kAbout) || !has_ended(owner_in(name))) return false;
  const std::string path = directory + "/" + name;
  return ::access((path.substr(0, path.rfind('.')) + kSuffix).c_str(), F_OK) != 0;
}

void write_about(const std::string& path, const std::string& about) {
  const Descriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file.number() < 0) return;
  if (write_all(file.number(), about) != 0) ::unlink(path.c_str());
}

Error refused(const std::string& what, int error) {
  return {ErrorKind::kSystem, what + ": " + ::strerror(error)};
}

std::vector<std::string> directories(const Environment& environment) {
  const std::string user = std::to_string(::geteuid());
  std::vector<std::string> all;
  const std::string runtime = value_or(environment, "XDG_RUNTIME_DIR", "");
  if (runtime.starts_with("/")) all.push_back(runtime + "/ddprun");
  all.push_back("/tmp/ddprun-" + user);
  return all;
}

Result<void> bind_and_listen(int socket, const std::string& path) {
  const auto address = unix_address(path + kUnfinished);
  if (!address) return refused("the path " + printable(path), ENAMETOOLONG);
  const std::string temporary = path + kUnfinished;
  if (::bind(socket, reinterpret_cast<const sockaddr*>(&*address), sizeof(*address)) != 0) {
    return refused("cannot make " + printable(temporary), errno);
  }
  const bool listens =
      ::listen(socket, kBacklog) == 0 && ::rename(temporary.c_str(), path.c_str()) == 0;
  if (listens) return {};
  const int error = errno;
  ::unlink(temporary.c_str());
  return refused("cannot listen at " + printable(path), error);
}

/// Directories of this user, closed to others, whose names begin so. Another user may have made any
/// number of such names there: only the first are looked at.
std::vector<std::string> others_of(const std::string& wanted) {
  std::vector<std::string> found;
  int looked_at = 0;
  const auto slash = wanted.rfind('/');
  const std::string start = wanted.substr(slash + 1) + "-";
  const std::string above = wanted.substr(0, slash);
  for_each_entry(above, [&](const dirent& entry) {
    if (!std::string_view(entry.d_name).starts_with(start)) return true;
    if (++looked_at > kOthersMax) return false;
    const std::string path = above + "/" + entry.d_name;
    if (check_private(path)) found.push_back(path);
    return true;
  });
  std::sort(found.begin(), found.end());
  return found;
}

Result<Listener> listen_in(const std::string& wanted, const std::string& about) {
  const auto directory = private_directory_at(wanted);
  if (!directory) return directory.error();
  const std::string name = std::to_string(::getpid()) + "-" + random_uuid().substr(0, 8);
  Listener listener{-1, *directory + "/" + name + kSuffix};
  listener.descriptor = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener.descriptor < 0) return refused("cannot make a socket", errno);
  write_about(about_path(listener.path), about);
  const auto listens = bind_and_listen(listener.descriptor, listener.path);
  if (listens) return listener;
  ::unlink(about_path(listener.path).c_str());
  ::close(listener.descriptor);
  return listens.error();
}

}  // namespace

bool is_unfinished_of_ended(const std::string& name, const std::string& suffix) {
  if (!name.ends_with(suffix + kUnfinished)) return false;
  return has_ended(owner_in(name));
}

std::string read_about(const std::string& path) {
  const Descriptor file(open_regular_file(about_path(path), O_NOFOLLOW));
  return file.number() < 0 ? "" : read_range(file.number(), 0, kAboutBytesMax);
}

pid_t owner_of(const std::string& path) {
  return owner_in(path.substr(path.rfind('/') + 1));
}

Result<void> check_private(const std::string& directory) {
  struct stat facts = {};
  if (::lstat(directory.c_str(), &facts) != 0) {
    return refused("cannot use " + printable(directory), errno);
  }
  if (!S_ISDIR(facts.st_mode)) return refused("cannot use " + printable(directory), ENOTDIR);
  const char* wrong = nullptr;
  if ((facts.st_mode & 077) != 0) wrong = "other users may enter it";
  if (facts.st_uid != ::geteuid()) wrong = "it belongs to another user";
  if (wrong == nullptr) return {};
  return Error(ErrorKind::kSystem, "cannot use " + printable(directory) + ": " + wrong);
}

Result<std::string> private_directory_at(const std::string& wanted) {
  if (::mkdir(wanted.c_str(), 0700) != 0 && errno != EEXIST) {
    return refused("cannot make " + printable(wanted), errno);
  }
  const auto usable = check_private(wanted);
  if (usable) return wanted;
  const auto others = others_of(wanted);
  if (!others.empty()) return others.front();
  std::string made = wanted + "-XXXXXX";
  if (::mkdtemp(made.data()) != nullptr) return made;
  return usable.error();
}

Result<Listener> listen(const Environment& environment, const std::string& about) {
  Result<Listener> listener = Error();
  for (const std::string& directory : directories(environment)) {
    listener = listen_in(directory, about);
    if (listener) break;
  }
  return listener;
}

void remove(const std::string& path) {
  ::unlink(path.c_str());
  ::unlink(about_path(path).c_str());
}

std::vector<std::string> list_sockets(const Environment& environment) {
  std::vector<std::string> places = directories(environment);
  places.push_back("/run/user/" + std::to_string(::geteuid()) + "/ddprun");
  for (const std::string& place : std::vector<std::string>(places)) {
    const auto others = others_of(place);
    places.insert(places.end(), others.begin(), others.end());
  }
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  std::vector<std::string> paths;
  for (const std::string& place : places) {
    if (!check_private(place)) continue;
    for_each_entry(place, [&](const dirent& entry) {
      const std::string name = entry.d_name;
      if (is_unfinished_of_ended(name, kSuffix) || is_about_none(place, name)) {
        ::unlink((place + "/" + name).c_str());
      }
      if (name.ends_with(kSuffix)) paths.push_back(place + "/" + name);
      return true;
    });
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

int connect(const std::string& path, int seconds) {
  const auto address = unix_address(path);
  if (!address) {
    errno = ENAMETOOLONG;
    return -1;
  }
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return -1;
  const timeval limit{seconds, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&*address), sizeof(*address)) == 0) {
    return socket;
  }
  const int error = errno;
  ::close(socket);
  if (error == ECONNREFUSED) remove(path);  // its ddprun has ended without a chance to do that
  errno = error;
  return -1;
}

}  // namespace ddprun::control
