#include "agent/output/line_assembler.hpp"

#include <algorithm>

#include "agent/output/stream_pump.hpp"

namespace ddprun {
namespace {

constexpr auto kNowhere = std::string_view::npos;

// The position of the last \r that is followed by text.
std::size_t last_return(std::string_view text) {
  const auto end = text.find_last_not_of('\r');
  return end == kNowhere ? kNowhere : text.rfind('\r', end);
}

std::string_view without_final_returns(std::string_view text) {
  return text.substr(0, text.find_last_not_of('\r') + 1);
}

}  // namespace

void LineAssembler::feed(std::string_view bytes, TimePoint now, const Emit& emit,
                         const Emit& sample) {
  while (true) {
    const auto newline = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, newline);
    if (newline == kNowhere) {
      take_sample(piece, now, sample);
      append(piece);
      return;
    }
    if (pending_.empty() && cut_bytes_ == 0) {
      const std::string_view line = without_final_returns(piece);
      emit(line.substr(last_return(line) + 1));  // npos + 1 is 0
    } else {
      append(piece);
      emit_pending(emit);
    }
    sampled_at_.reset();
    bytes.remove_prefix(newline + 1);
  }
}

void LineAssembler::finish(const Emit& emit) {
  if (!pending_.empty() || cut_bytes_ != 0) emit_pending(emit);
  sampled_at_.reset();
}

void LineAssembler::append(std::string_view piece) {
  if (piece.empty()) return;
  const std::string_view text = without_final_returns(piece);
  if (!text.empty()) {
    const auto from = last_return(text);
    const bool goes_back = from != kNowhere || pending_.ends_with('\r') || text.front() == '\r';
    if (goes_back) {
      pending_.clear();
      cut_bytes_ = 0;
    }
    add_bounded(text.substr(from + 1));
  }
  const bool ends_in_return = text.size() < piece.size();
  if (ends_in_return && !pending_.empty() && !pending_.ends_with('\r')) pending_ += '\r';
}

void LineAssembler::add_bounded(std::string_view text) {
  const std::size_t room = kLineBytesMax - std::min(pending_.size(), kLineBytesMax);
  pending_ += text.substr(0, room);
  if (text.size() > room) cut_bytes_ += text.size() - room;
}

// Shows the latest complete state of an unfinished line if it has not been shown for a while.
void LineAssembler::take_sample(std::string_view piece, TimePoint now, const Emit& emit) {
  const bool uses_return = piece.find('\r') != kNowhere || pending_.ends_with('\r');
  if (!uses_return) return;
  if (!sampled_at_) sampled_at_ = now;
  if (now - *sampled_at_ < interval_) return;
  std::string states = pending_;
  states += piece;
  const auto end = states.rfind('\r');
  const std::string_view done = without_final_returns(std::string_view(states).substr(0, end));
  const std::string_view state = done.substr(last_return(done) + 1);
  if (state.empty()) return;
  emit(state);
  sampled_at_ = now;
}

void LineAssembler::emit_pending(const Emit& emit) {
  if (pending_.ends_with('\r')) pending_.pop_back();
  if (cut_bytes_ != 0) {
    pending_ += " [ddprun: " + std::to_string(cut_bytes_) + " more bytes of this line not shown]";
  }
  emit(pending_);
  pending_.clear();
  cut_bytes_ = 0;
  if (pending_.capacity() > kPumpChunkBytes) pending_.shrink_to_fit();
}

}  // namespace ddprun
