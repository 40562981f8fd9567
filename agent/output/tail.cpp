#include "agent/output/tail.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>

#include "agent/proc/files.hpp"

namespace ddprun {

namespace {

// What is read of the end of a file to find what a report quotes.
constexpr std::size_t kTailReadMax = 1024 * 1024;

// Of a line longer than the first, its beginning and its end are kept.
constexpr std::size_t kLongLine = 16 * 1024;
constexpr std::size_t kLineBegin = 4 * 1024;
constexpr std::size_t kLineEnd = 4 * 1024;
constexpr std::string_view kMiddle = " ... ";
static_assert(kLineBegin + kMiddle.size() + kLineEnd < kLongLine / 2 + kLongLine / 4);

/// Cuts the middle out of the long lines of `text`. Looks at few bytes where there is none.
void shorten_long_lines(std::string& text) {
  std::size_t begin = 0;  // of a line
  while (text.size() - begin > kLongLine) {
    const std::size_t newline = text.rfind('\n', begin + kLongLine);
    if (newline != std::string::npos && newline >= begin) {
      begin = newline + 1;
      continue;
    }
    const std::size_t end = std::min(text.find('\n', begin + kLongLine), text.size());
    text.replace(begin + kLineBegin, end - begin - kLineBegin - kLineEnd, kMiddle);
    begin += kLineBegin + kMiddle.size() + kLineEnd;
  }
}

}  // namespace

void Tail::append(std::string_view bytes) {
  kept_ += bytes;
  if (kept_.size() <= 2 * bytes_max_) return;
  shorten_long_lines(kept_);
  if (kept_.size() > bytes_max_) kept_.erase(0, kept_.size() - bytes_max_);
}

std::string Tail::text() const {
  std::string text = kept_;
  shorten_long_lines(text);
  if (text.size() > bytes_max_) text.erase(0, text.size() - bytes_max_);
  return text;
}

std::string tail_of_file(const std::string& path, std::size_t bytes_max, std::uint64_t before) {
  const int file = open_regular_file(path, O_NOFOLLOW);
  if (file < 0) return {};
  struct stat status = {};
  ::fstat(file, &status);
  // More than is kept, because lines may be long.
  const auto all = static_cast<std::uint64_t>(status.st_size);
  const auto size =
      static_cast<std::size_t>(all < before ? all : all - before);  // less: it was cut
  const auto wanted = std::min(size, std::max(bytes_max, kTailReadMax));
  std::string bytes(wanted, '\0');
  const auto from = status.st_size - static_cast<off_t>(wanted);
  const ssize_t got = ::pread(file, bytes.data(), wanted, from);
  ::close(file);
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  Tail tail(bytes_max);
  tail.append(bytes);
  return tail.text();
}

std::uint64_t size_of_file(const std::string& path) {
  struct stat status = {};
  const bool is_file = ::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
  return is_file ? static_cast<std::uint64_t>(status.st_size) : 0;
}

}  // namespace ddprun
