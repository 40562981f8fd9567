#include "agent/file_text.hpp"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "agent/core/limits.hpp"

namespace ddprun {

namespace {

Error file_error(const std::string& path) {
  return {ErrorKind::kSystem, "cannot write " + path + ": " + strerror(errno)};
}

}  // namespace

std::optional<std::string> read_file(const std::string& path) {
  if (path.empty()) return std::nullopt;
  // O_NONBLOCK: whatever a worker left at this path, a FIFO included, opening it ends at once.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return std::nullopt;
  std::string text;
  char chunk[4096];
  ssize_t got = 0;
  while (text.size() <= kErrorFileBytesMax && (got = ::read(descriptor, chunk, sizeof chunk)) > 0) {
    text.append(chunk, static_cast<std::size_t>(got));
  }
  ::close(descriptor);
  if (text.empty()) return std::nullopt;
  return text;
}

Result<void> write_file(const std::string& path, const std::string& text) {
  ::unlink(path.c_str());
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) return file_error(path);
  const ssize_t written = ::write(descriptor, text.data(), text.size());
  const Error why = file_error(path);
  ::close(descriptor);
  if (written != static_cast<ssize_t>(text.size())) return why;
  return {};
}

}  // namespace ddprun
