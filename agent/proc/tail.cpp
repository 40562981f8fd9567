#include "agent/proc/tail.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "agent/proc/directory.hpp"

namespace ddprun {

void Tail::append(std::string_view bytes) {
  if (bytes.size() >= bytes_max_) {
    kept_ = bytes.substr(bytes.size() - bytes_max_);
    return;
  }
  kept_ += bytes;
  if (kept_.size() > 2 * bytes_max_) kept_.erase(0, kept_.size() - bytes_max_);
}

std::string Tail::text() const {
  return kept_.substr(kept_.size() - std::min(kept_.size(), bytes_max_));
}

std::string tail_of_file(const std::string& path, std::size_t bytes_max) {
  const int file = open_regular_file(path, O_NOFOLLOW);
  if (file < 0) return {};
  struct stat status = {};
  ::fstat(file, &status);
  const auto wanted = std::min(static_cast<std::size_t>(status.st_size), bytes_max);
  std::string bytes(wanted, '\0');
  const auto from = status.st_size - static_cast<off_t>(wanted);
  const ssize_t got = ::pread(file, bytes.data(), wanted, from);
  ::close(file);
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return bytes;
}

}  // namespace ddprun
