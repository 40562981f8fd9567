#include "agent/proc/files.hpp"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string_view>
#include <utility>

#include "base/descriptor.hpp"
#include "base/random_uuid.hpp"

namespace ddprun {

namespace fs = std::filesystem;

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

Error cannot_leave(const std::string& path, const std::string& why) {
  return {ErrorKind::kSystem, "cannot write " + path + ": " + why};
}

Error cannot_leave(const std::string& path, int error) {
  return cannot_leave(path, ::strerror(error));
}

/// Returns 0 or errno. Closes the descriptor.
int write_and_close(int descriptor, const std::string& text) {
  const int error = write_all(descriptor, text);
  ::close(descriptor);
  return error;
}

/// For a folder in which nothing may be created: writes into the file itself.
Result<void> overwrite(const std::string& path, const std::string& text, int why_not_replaced) {
  constexpr int kNoTricks = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  const int descriptor = ::open(path.c_str(), O_WRONLY | kNoTricks);
  if (descriptor < 0) return cannot_leave(path, why_not_replaced);
  struct stat status = {};
  const bool regular = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  if (!regular || ::ftruncate(descriptor, 0) != 0) {
    ::close(descriptor);
    return cannot_leave(path, why_not_replaced);
  }
  const int error = write_and_close(descriptor, text);
  if (error != 0) return cannot_leave(path, error);
  return {};
}

Result<void> replace(const std::string& path, const std::string& text) {
  const fs::path parent = fs::path(path).parent_path();
  const std::string name = fs::path(path).filename().string();
  Directory folder;
  int error = folder.open(parent.empty() ? "." : parent.string());
  if (error != 0) return cannot_leave(path, error);
  const std::string partial = ".ddprun_" + random_letters();
  const int descriptor = folder.create_file(partial, 0);
  if (descriptor < 0) return overwrite(path, text, errno);
  error = write_and_close(descriptor, text);
  const int at = folder.descriptor();
  if (error == 0 && ::renameat(at, partial.c_str(), at, name.c_str()) != 0) error = errno;
  if (error == 0) return {};
  ::unlinkat(at, partial.c_str(), 0);
  return cannot_leave(path, error);
}

/// To a FIFO or a character device, if it has a reader now.
Result<void> offer(const std::string& path, const std::string& text) {
  constexpr int kNoTricks = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  const int descriptor = ::open(path.c_str(), O_WRONLY | kNoTricks);
  if (descriptor < 0 && errno == ENXIO) return cannot_leave(path, "it has no reader");
  if (descriptor < 0) return cannot_leave(path, errno);
  struct stat status = {};  // another file may have come to its place
  const bool is_known = ::fstat(descriptor, &status) == 0;
  if (!is_known || (!S_ISFIFO(status.st_mode) && !S_ISCHR(status.st_mode))) {
    ::close(descriptor);
    return cannot_leave(path, "it was replaced meanwhile");
  }
  const int error = write_and_close(descriptor, text);
  if (error == EAGAIN) return cannot_leave(path, "its reader does not take it");
  if (error != 0) return cannot_leave(path, error);
  return {};
}

}  // namespace

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

std::string read_range(int descriptor, off_t from, std::size_t bytes_max) {
  std::string text;
  std::array<char, 4096> chunk;  // not filled with zeros: /proc has thousands of files
  while (text.size() < bytes_max) {
    const auto wanted = std::min(chunk.size(), bytes_max - text.size());
    const auto at = from + static_cast<off_t>(text.size());
    const ssize_t got = ::pread(descriptor, chunk.data(), wanted, at);
    if (got <= 0) break;
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
  return text;
}

std::optional<std::string> read_beginning(const std::string& path, std::size_t bytes_max) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.number() < 0) return std::nullopt;
  return read_range(file.number(), 0, bytes_max);
}

std::optional<std::string> read_file(const std::string& path) {
  const Descriptor file(path.empty() ? -1 : open_regular_file(path, O_NOFOLLOW));
  if (file.number() < 0) return std::nullopt;
  std::string text = read_range(file.number(), 0, kErrorFileBytesMax + 1);
  if (text.size() > kErrorFileBytesMax) {
    struct stat status = {};
    ::fstat(file.number(), &status);
    text.pop_back();
    const auto end = status.st_size - static_cast<off_t>(kErrorFileEndBytes);
    const auto behind = static_cast<off_t>(kErrorFileBytesMax);
    text += read_range(file.number(), std::max(end, behind), kErrorFileEndBytes);
  }
  if (text.empty()) return std::nullopt;
  return text;
}

Result<void> leave_file(const std::string& path, const std::string& text) {
  struct stat status = {};
  const bool there = ::lstat(path.c_str(), &status) == 0;
  if (!there && errno != ENOENT) return cannot_leave(path, errno);
  if (!there || S_ISREG(status.st_mode)) return replace(path, text);
  if (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode)) return offer(path, text);
  const char* what = S_ISLNK(status.st_mode) ? "a symbolic link" : "neither a file nor a FIFO";
  return cannot_leave(path, std::string("it is ") + what + ", which ddprun does not replace");
}

bool for_each_entry(const std::string& directory, const std::function<bool(const dirent&)>& visit) {
  return for_each_entry(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), visit);
}

bool for_each_entry(int directory, const std::function<bool(const dirent&)>& visit) {
  const std::unique_ptr<DIR, int (*)(DIR*)> list(::fdopendir(directory), ::closedir);
  if (list == nullptr) {
    if (directory >= 0) ::close(directory);
    return false;
  }
  while (const dirent* item = ::readdir(list.get())) {
    const std::string_view name = item->d_name;
    if (name != "." && name != ".." && !visit(*item)) break;
  }
  return true;
}

std::string random_letters() {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789_";
  std::array<unsigned char, kRandomLetters> bytes = {};
  fill_random(bytes.data(), bytes.size());
  std::string letters;
  for (const unsigned char byte : bytes) letters += kLetters[byte % kLetters.size()];
  return letters;
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
