#include "agent/output/write_times.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace ddprun {

namespace {

// Bytes that come sooner belong to the piece before.
constexpr Duration kMoment = std::chrono::milliseconds(5);
constexpr std::size_t kPiecesMax = 256;
constexpr std::size_t kLivePiecesMin = 3;
constexpr Duration kLiveMin = std::chrono::seconds(1);

}  // namespace

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
