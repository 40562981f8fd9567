#include "agent/proc/file_text.hpp"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "agent/proc/directory.hpp"
#include "base/limits.hpp"
#include "net/disk_thread.hpp"

namespace ddprun {

namespace fs = std::filesystem;

namespace {

Error cannot_leave(const std::string& path, const std::string& why) {
  return {ErrorKind::kSystem, "cannot write " + path + ": " + why};
}

Error cannot_leave(const std::string& path, int error) {
  return cannot_leave(path, strerror(error));
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
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (descriptor < 0 && errno == ENXIO) return cannot_leave(path, "it has no reader");
  if (descriptor < 0) return cannot_leave(path, errno);
  const int error = write_and_close(descriptor, text);
  if (error == EAGAIN) return cannot_leave(path, "its reader does not take it");
  if (error != 0) return cannot_leave(path, error);
  return {};
}

std::string read_some(int descriptor, off_t from, std::size_t bytes_max) {
  std::string text;
  char chunk[4096];
  while (text.size() < bytes_max) {
    const auto wanted = std::min(sizeof chunk, bytes_max - text.size());
    const auto at = from + static_cast<off_t>(text.size());
    const ssize_t got = ::pread(descriptor, chunk, wanted, at);
    if (got <= 0) break;
    text.append(chunk, static_cast<std::size_t>(got));
  }
  return text;
}

}  // namespace

std::optional<std::string> read_file(const std::string& path) {
  const int descriptor = path.empty() ? -1 : open_regular_file(path, O_NOFOLLOW);
  if (descriptor < 0) return std::nullopt;
  std::string text = read_some(descriptor, 0, kErrorFileBytesMax + 1);
  if (text.size() > kErrorFileBytesMax) {
    struct stat status = {};
    ::fstat(descriptor, &status);
    text.pop_back();
    const auto end = status.st_size - static_cast<off_t>(kErrorFileEndBytes);
    const auto behind = static_cast<off_t>(kErrorFileBytesMax);
    text += read_some(descriptor, std::max(end, behind), kErrorFileEndBytes);
  }
  ::close(descriptor);
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

}  // namespace ddprun
