#include "agent/output/lines.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "agent/output/stream_pump.hpp"
#include "base/printable.hpp"

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

std::string note_of_cut(std::uint64_t bytes) {
  return " [ddprun: " + std::to_string(bytes) + " more bytes of this line not shown]";
}

// A longer one that is cut is given up: its end is taken for text.
constexpr std::size_t kSequenceBytesMax = 4096;

bool is_cut(std::string_view sequence) {
  if (sequence.size() < 2) return true;
  const char last = sequence.back();
  if (sequence[1] == '[') return sequence.size() == 2 || last < '@' || last > '~';
  const bool is_string = std::string_view("]PX^_").find(sequence[1]) != std::string_view::npos;
  if (is_string) return last != '\a' && !sequence.substr(2).ends_with("\x1b\\");
  return last < '0' || last > '~';  // intermediate bytes
}

// Of ESC [ n X.
std::size_t number_in(std::string_view sequence, std::size_t preset) {
  std::size_t number = 0;
  const char* begin = sequence.data() + 2;
  const auto parsed = std::from_chars(begin, sequence.data() + sequence.size(), number);
  return parsed.ptr == begin ? preset : number;
}

bool is_blank(const ScreenLine& line) {
  return without_colours(line.text).find_first_not_of(' ') == std::string::npos;
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
  if (cut_bytes_ != 0) pending_ += note_of_cut(cut_bytes_);
  emit(pending_);
  pending_.clear();
  cut_bytes_ = 0;
  if (pending_.capacity() > kPumpChunkBytes) pending_.shrink_to_fit();
}

void ScreenLines::feed(std::string_view bytes, const Emit& emit) {
  std::string joined;
  if (!sequence_.empty()) {
    joined = std::exchange(sequence_, {}).append(bytes);
    bytes = joined;
  }
  while (!bytes.empty()) {
    const std::size_t plain = std::min(bytes.find_first_of("\n\r\x1b"), bytes.size());
    write(bytes.substr(0, plain));
    bytes.remove_prefix(plain);
    if (bytes.empty()) return;
    std::size_t taken = 1;
    if (bytes.front() == '\n') {
      end_line(emit);
    } else if (bytes.front() == '\r') {
      lines_[cursor_].is_at_start = true;
    } else {
      std::string_view sequence = bytes.substr(0, escape_size(bytes));
      sequence = sequence.substr(0, sequence.find('\n'));  // it never has one
      taken = sequence.size();
      if (taken == bytes.size() && is_cut(sequence) && taken < kSequenceBytesMax) {
        sequence_ = sequence;
        return;
      }
      obey(sequence);
    }
    bytes.remove_prefix(taken);
  }
}

void ScreenLines::settle(const Emit& emit) {
  while (cursor_ > 0) leave(emit);
}

void ScreenLines::finish(const Emit& emit) {
  lines_.back().was_final = lines_.back().was_final || is_blank(lines_.back());
  while (!lines_.empty()) leave(emit);
  lines_.resize(1);
  cursor_ = 0;
  last_ = kNone;
  sequence_.clear();
}

ScreenLine* ScreenLines::unfinished() {
  if (last_ == kNone || is_blank(lines_[last_])) return nullptr;
  return &lines_[last_];
}

bool ScreenLines::draws() const {
  if (lines_.size() > 1 || last_ == kNone) return true;
  return lines_[last_].is_bar || lines_[last_].is_at_start;
}

void ScreenLines::write(std::string_view text) {
  if (text.empty()) return;
  ScreenLine& line = lines_[cursor_];
  if (line.is_at_start) {
    line.text = std::exchange(line.colours, {});
    line.shown = 0;
    line.cut_bytes = 0;
    line.is_bar = true;
    line.is_at_start = false;
  }
  const std::size_t room = kLineBytesMax - std::min(line.text.size(), kLineBytesMax);
  line.text += text.substr(0, room);
  line.cut_bytes += text.size() - std::min(text.size(), room);
  last_ = cursor_;
}

void ScreenLines::obey(std::string_view sequence) {
  ScreenLine& line = lines_[cursor_];
  if (is_colour(sequence)) {
    std::string& colours = line.is_at_start ? line.colours : line.text;
    if (colours.size() < kLineBytesMax) colours += sequence;
    return;
  }
  if (sequence == "\x1bM") return move_up(1);
  if (!sequence.starts_with("\x1b[")) return;
  switch (sequence.back()) {
    case 'A':
    case 'F':
      return move_up(std::max<std::size_t>(1, number_in(sequence, 1)));
    case 'G':
      line.is_at_start = line.is_at_start || number_in(sequence, 1) <= 1;
      return;
    case 'J':
      return erase_below();
    case 'K':
      return erase_line(number_in(sequence, 0) == 2);
    default:
      return;
  }
}

void ScreenLines::end_line(const Emit& emit) {
  if (++cursor_ == lines_.size()) {
    lines_.emplace_back();
  } else {
    lines_[cursor_].is_at_start = true;
  }
  while (lines_.size() > height_) leave(emit);
}

void ScreenLines::move_up(std::size_t lines) {
  lines = std::min(lines, kRedrawnLinesMax - 1);
  while (lines > cursor_ && lines_.size() < kRedrawnLinesMax) {
    lines_.emplace_front().was_final = true;
    ++cursor_;
    if (last_ != kNone) ++last_;
  }
  height_ = std::max(height_, lines_.size());
  cursor_ -= std::min(lines, cursor_);
  lines_[cursor_].is_at_start = true;
}

void ScreenLines::erase_line(bool whole) {
  ScreenLine& line = lines_[cursor_];
  if (!whole && !line.is_at_start) return;
  line.text.clear();
  line.shown = 0;
  line.cut_bytes = 0;
  line.is_bar = true;
  line.is_at_start = true;
}

void ScreenLines::erase_below() {
  erase_line(false);
  for (std::size_t i = cursor_ + 1; i < lines_.size(); ++i) {
    lines_[i].text.clear();
    lines_[i].is_bar = true;
  }
}

// The first line is final.
void ScreenLines::leave(const Emit& emit) {
  ScreenLine line = std::move(lines_.front());
  lines_.pop_front();
  cursor_ -= std::min<std::size_t>(cursor_, 1);
  last_ = last_ == kNone || last_ == 0 ? kNone : last_ - 1;
  const bool was_seen = line.is_bar || line.was_final;
  if (was_seen && is_blank(line)) return;
  if (line.cut_bytes != 0) line.text += note_of_cut(line.cut_bytes);
  emit(line);
}

}  // namespace ddprun
