#include "agent/proc/directory.hpp"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <string_view>
#include <utility>

#include "base/random_uuid.hpp"

namespace ddprun {

namespace {

constexpr std::size_t kRandomLetters = 8;
constexpr int kAsDirectory = O_PATH | O_DIRECTORY | O_CLOEXEC;  // the right to pass is enough

// Whether user 0 is the machine's. In a user namespace that an ordinary user has made, as rootless
// containers are, it is that user, and directories of others, /tmp too, belong to the overflow id.
bool is_root_of_machine() {
  if (::geteuid() != 0) return false;
  std::ifstream map("/proc/self/uid_map");
  unsigned inside = 0;
  unsigned outside = 0;
  unsigned count = 0;
  while (map >> inside >> outside >> count) {
    if (inside == 0 && count > 0) return outside == 0;
  }
  return true;
}

}  // namespace

std::string random_letters() {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789_";
  std::array<unsigned char, kRandomLetters> bytes = {};
  fill_random(bytes.data(), bytes.size());
  std::string letters;
  for (const unsigned char byte : bytes) letters += kLetters[byte % kLetters.size()];
  return letters;
}

int open_regular_file(const std::string& path, int flags) {
  constexpr int kWithoutWaiting = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  const int descriptor = ::open(path.c_str(), kWithoutWaiting | flags);
  struct stat status = {};
  if (descriptor < 0 || (::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode))) {
    return descriptor;
  }
  ::close(descriptor);
  return -1;
}

Directory::Directory(Directory&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}

Directory& Directory::operator=(Directory&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(path_, other.path_);
  return *this;
}

Directory::~Directory() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

int Directory::open(const std::string& path) {
  path_ = path;
  descriptor_ = ::open(path.c_str(), kAsDirectory);
  return is_open() ? 0 : errno;
}

int Directory::make_in(const Directory& parent, const std::string& name, mode_t mode) {
  if (::mkdirat(parent.descriptor_, name.c_str(), mode) != 0) return errno;
  const int error = open_in(parent, name);
  if (error != 0) return error;
  return is_foreign_to_root() ? EPERM : 0;
}

int Directory::open_in(const Directory& parent, const std::string& name) {
  path_ = parent.path_ + "/" + name;
  descriptor_ = ::openat(parent.descriptor_, name.c_str(), kAsDirectory | O_NOFOLLOW);
  return is_open() ? 0 : errno;
}

int Directory::create_file(const std::string& name, int flags) const {
  constexpr int kNew = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  return ::openat(descriptor_, name.c_str(), kNew | flags, 0666);
}

bool Directory::is_foreign_to_root() const {
  struct stat status = {};
  return ::fstat(descriptor_, &status) == 0 && status.st_uid != 0 && is_root_of_machine();
}

std::string Directory::foreign_sentence() const {
  struct stat status = {};
  ::fstat(descriptor_, &status);
  return path_ + " belongs to user " + std::to_string(status.st_uid) +
         ", who could make root write elsewhere; name a directory that root owns if that user is "
         "not trusted";
}

}  // namespace ddprun
