#include "agent/proc/prefixed_lines.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "agent/proc/limits.hpp"
#include "base/escapes.hpp"

namespace ddprun {
namespace {

// A bar that is wider than the terminal is cut: of two lines only one could be cleared.
constexpr std::string_view kWrapOff = "\x1b[?7l";
constexpr std::string_view kWrapOn = "\x1b[?7h";
constexpr std::string_view kColourOff = "\x1b[0m";
// Cyan, yellow, magenta, green, blue, and three bright ones; red is for errors.
constexpr std::array kColours = {36, 33, 35, 32, 34, 96, 93, 95};

}  // namespace

std::string rank_label(const std::string& host, int rank, bool coloured) {
  std::string label = host + ":" + std::to_string(rank) + "| ";
  if (!coloured || rank < 0) return label;
  const int colour = kColours[static_cast<std::size_t>(rank) % kColours.size()];
  return "\x1b[" + std::to_string(colour) + "m" + label + std::string(kColourOff);
}

std::string text_behind_label(std::string_view line) {
  std::string text;
  bool coloured = false;
  while (!line.empty()) {
    const std::size_t plain = std::min(line.find('\x1b'), line.size());
    text += line.substr(0, plain);
    line.remove_prefix(plain);
    const std::string_view sequence = line.substr(0, escape_size(line));
    if (is_colour(sequence)) {
      text += sequence;
      coloured = true;
    }
    line.remove_prefix(sequence.size());
  }
  if (coloured && !text.ends_with(kColourOff)) text += kColourOff;
  return text;
}

std::string LiveLine::make_way() {
  if (std::exchange(shows_bar_, false)) return std::string(kClearLine);
  return std::exchange(in_raw_line_, false) ? "\n" : "";
}

std::string LiveLine::make_way_for_raw(std::string_view bytes) {
  if (!bytes.empty()) in_raw_line_ = bytes.back() != '\n';
  return std::exchange(shows_bar_, false) ? std::string(kClearLine) : "";
}

bool LiveLine::take(const PrefixedLines* stream, TimePoint now) {
  const bool is_free = owner_ == nullptr || now - drawn_at_ > kProgressInterval;
  if (in_raw_line_ || (owner_ != stream && !is_free)) return false;
  owner_ = stream;
  drawn_at_ = now;
  shows_bar_ = true;
  return true;
}

void LiveLine::release(const PrefixedLines* stream) {
  if (owner_ == stream) owner_ = nullptr;
}

PrefixedLines::PrefixedLines(LiveLine* live)
    : live_(live), lines_(live == nullptr ? Duration(kProgressInterval) : kRedrawInterval) {}

PrefixedLines::~PrefixedLines() {
  if (live_ != nullptr) live_->release(this);
}

std::string PrefixedLines::feed(std::string_view bytes, TimePoint now) {
  std::string bar;
  const auto line = [this](std::string_view text) { add_line(text); };
  const auto state = [&](std::string_view text) { bar = text_behind_label(text); };
  if (live_ == nullptr) {
    lines_.feed(bytes, now, line, line);
    return take_block();
  }
  lines_.feed(bytes, now, line, state);
  std::string shown = take_block();
  if (bar.empty() || !live_->take(this, now)) return shown;
  shown.append(kClearLine).append(kWrapOff).append(label_).append(bar).append(kWrapOn);
  return shown;
}

std::string PrefixedLines::finish() {
  lines_.finish([this](std::string_view text) { add_line(text); });
  if (live_ != nullptr) live_->release(this);
  return take_block();
}

void PrefixedLines::add_line(std::string_view line) {
  if (live_ != nullptr) live_->release(this);
  block_ += label_;
  block_ += text_behind_label(line);
  block_ += '\n';
}

std::string PrefixedLines::take_block() {
  std::string block = std::exchange(block_, {});
  if (live_ == nullptr || block.empty()) return block;
  return live_->make_way() + block;
}

}  // namespace ddprun
