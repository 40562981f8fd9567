#include "agent/output/tail.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "agent/proc/files.hpp"
#include "base/descriptor.hpp"

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

// Bytes that come sooner belong to the piece before.
constexpr Duration kMoment = std::chrono::milliseconds(5);
constexpr std::size_t kPiecesMax = 256;
constexpr std::size_t kLivePiecesMin = 3;
constexpr Duration kLiveMin = std::chrono::seconds(1);

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
  const Descriptor file(open_regular_file(path, O_NOFOLLOW));
  if (file.number() < 0) return {};
  struct stat status = {};
  ::fstat(file.number(), &status);
  // More than is kept, because lines may be long.
  const auto all = static_cast<std::uint64_t>(status.st_size);
  const auto size =
      static_cast<std::size_t>(all < before ? all : all - before);  // less: it was cut
  const auto wanted = std::min(size, std::max(bytes_max, kTailReadMax));
  Tail tail(bytes_max);
  tail.append(read_range(file.number(), status.st_size - static_cast<off_t>(wanted), wanted));
  return tail.text();
}

std::uint64_t size_of_file(const std::string& path) {
  struct stat status = {};
  const bool is_file = ::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
  return is_file ? static_cast<std::uint64_t>(status.st_size) : 0;
}

void WriteTimes::add(TimePoint now, std::string_view bytes) {
  if (pieces_.empty() || now - pieces_.back().at >= kMoment) {
    pieces_.push_back({now});
    if (pieces_.size() > kPiecesMax) pieces_.pop_front();
  }
  pieces_.back().bytes += bytes.size();
  pieces_.back().ends_line = bytes.ends_with('\n');
}

bool WriteTimes::is_live() const {
  if (pieces_.size() < kLivePiecesMin) return false;
  const auto whole = static_cast<std::size_t>(std::count_if(
      pieces_.begin(), pieces_.end(), [](const Piece& piece) { return piece.ends_line; }));
  return 4 * whole >= 3 * pieces_.size() && pieces_.back().at - pieces_.front().at >= kLiveMin;
}

std::string WriteTimes::merged(const Stream& one, const Stream& other) {
  std::vector<std::pair<TimePoint, std::string_view>> pieces;
  for (const Stream* stream : {&one, &other}) {
    std::size_t end = stream->tail.size();
    const auto& all = stream->times.pieces_;
    for (auto piece = all.rbegin(); piece != all.rend() && end > 0; ++piece) {
      const std::size_t bytes = std::min(piece->bytes, end);
      end -= bytes;
      pieces.emplace_back(piece->at, std::string_view(stream->tail).substr(end, bytes));
    }
    pieces.emplace_back(TimePoint::min(), std::string_view(stream->tail).substr(0, end));
  }
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const auto& left, const auto& right) { return left.first < right.first; });
  std::string text;
  const char* behind = nullptr;  // the last piece
  for (const auto& [at, piece] : pieces) {
    if (piece.empty()) continue;
    if (behind != nullptr && behind != piece.data() && !text.ends_with('\n')) text += '\n';
    text += piece;
    behind = piece.data() + piece.size();
  }
  return text;
}

}  // namespace ddprun
