#include "agent/proc/log_file.hpp"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <utility>

#include "agent/proc/spawn_error.hpp"

namespace ddprun {

namespace {

Error cannot_write(const std::string& path, int error) {
  return system_refused("cannot write the log file " + path, error);
}

}  // namespace

Result<LogFile> LogFile::open(const std::string& path) {
  const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC;
  const int descriptor = ::open(path.c_str(), flags, 0666);
  if (descriptor < 0) return cannot_write(path, errno);
  return LogFile(descriptor, path);
}

Result<LogFile> LogFile::create(const Directory& directory, const std::string& name) {
  const std::string path = directory.path() + "/" + name;
  const int descriptor = directory.create_file(name, O_APPEND);
  if (descriptor < 0) return cannot_write(path, errno);
  return LogFile(descriptor, path);
}

LogFile::LogFile(LogFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      path_(std::move(other.path_)),
      warned_(other.warned_) {}

LogFile& LogFile::operator=(LogFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(path_, other.path_);
  std::swap(warned_, other.warned_);
  return *this;
}

LogFile::~LogFile() {
  close();
}

void LogFile::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

void LogFile::append(std::string_view bytes, const Warn& warn) {
  if (descriptor_ < 0) return;
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int error = errno;
      if (!warned_ && warn) {
        warn("cannot write the log file " + path_ + ": " + ::strerror(error) +
             "; the run goes on, what does not fit is missing in the file");
      }
      warned_ = true;
      return;
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace ddprun
