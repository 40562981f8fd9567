#include "agent/output/prefixed_lines.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/printable.hpp"

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
  switch (std::exchange(stands_, Stands::kNothing)) {
    case Stands::kBar:
      return std::string(kClearLine);
    case Stands::kText:
    case Stands::kRaw:
      return "\n";
    case Stands::kNothing:
      break;
  }
  return {};
}

std::string LiveLine::make_way_for_raw(std::string_view bytes, const std::string& label,
                                       TimePoint now) {
  if (bytes.empty()) return {};
  const bool continues = stands_ == Stands::kRaw || (stands_ == Stands::kText && label_ == label);
  std::string way = continues ? std::string() : make_way();
  std::string_view last = bytes.substr(bytes.rfind('\n') + 1);  // npos + 1 is 0
  while (last.starts_with('\x1b')) last.remove_prefix(escape_size(last));
  if (!last.empty()) {
    stands_ = Stands::kRaw;
    label_ = label;
    written_at_ = now;
  } else if (bytes.find('\n') != std::string_view::npos) {
    stands_ = Stands::kNothing;
  }
  return way;
}

// Where raw text of the same rank waits for nothing, its bar begins below; a prompt would stay.
std::optional<std::string> LiveLine::way_for_bar(const PrefixedLines& stream, TimePoint now) {
  const bool is_free = bar_of_ == nullptr || bar_of_ == &stream;
  if (!is_free && now - drawn_at_ <= kProgressInterval) return std::nullopt;
  std::string way;
  if (stands_ == Stands::kRaw) {
    const bool is_later = stream.fed_at_ > written_at_ && now - written_at_ > kInterruptAfter;
    if (label_ != stream.label_ || !is_later) return std::nullopt;
    way = make_way();
  } else if (stands_ == Stands::kText && text_of_ != &stream) {
    if (now - written_at_ <= kProgressInterval) return std::nullopt;
    way = make_way();
  }
  stands_ = Stands::kBar;
  bar_of_ = &stream;
  drawn_at_ = now;
  return way.append(kClearLine);
}

std::optional<std::string> LiveLine::way_for_text(const PrefixedLines& stream, TimePoint now) {
  const bool continues = has_text_of(&stream);
  const bool stands = stands_ == Stands::kText || stands_ == Stands::kRaw;
  if (!continues && stands && now - written_at_ <= kInterruptAfter) return std::nullopt;
  std::string way;
  if (!continues) way = make_way().append(stream.label_);
  stands_ = Stands::kText;
  text_of_ = &stream;
  label_ = stream.label_;
  written_at_ = now;
  return way;
}

bool LiveLine::has_text_of(const PrefixedLines* stream) const {
  return stands_ == Stands::kText && text_of_ == stream;
}

void LiveLine::release(const PrefixedLines* stream) {
  if (bar_of_ == stream) bar_of_ = nullptr;
}

PrefixedLines::~PrefixedLines() {
  if (live_ == nullptr) return;
  live_->release(this);
  if (live_->text_of_ == this) live_->text_of_ = nullptr;
}

std::string PrefixedLines::feed(std::string_view bytes, TimePoint now) {
  if (live_ == nullptr) {
    const auto line = [this](std::string_view text) { add_line(text); };
    lines_.feed(bytes, now, line, line);
    return std::exchange(block_, {});
  }
  fed_at_ = now;
  screen_.feed(bytes, [this](const ScreenLine& line) { add_final(line); });
  if (!unfinished_due_ && screen_.unfinished() != nullptr) unfinished_due_ = now + kRedrawInterval;
  settle_due_.reset();
  if (screen_.is_unsettled()) settle_due_ = now + kSettleAfter;
  return std::exchange(block_, {});
}

std::optional<TimePoint> PrefixedLines::due() const {
  if (!unfinished_due_ || !settle_due_) return unfinished_due_ ? unfinished_due_ : settle_due_;
  return std::min(*unfinished_due_, *settle_due_);
}

std::string PrefixedLines::show_unfinished(TimePoint now) {
  if (settle_due_ && *settle_due_ <= now) {
    settle_due_.reset();
    screen_.settle([this](const ScreenLine& line) { add_final(line); });
  }
  std::string shown = std::exchange(block_, {});
  if (!unfinished_due_ || *unfinished_due_ > now) return shown;
  unfinished_due_.reset();
  ScreenLine* line = screen_.unfinished();
  if (line == nullptr) return shown;
  return shown += screen_.draws() ? bar(*line, now) : text(*line, now);
}

std::string PrefixedLines::finish() {
  unfinished_due_.reset();
  settle_due_.reset();
  if (live_ == nullptr) {
    lines_.finish([this](std::string_view text) { add_line(text); });
  } else {
    screen_.finish([this](const ScreenLine& line) { add_final(line); });
    live_->release(this);
  }
  return std::exchange(block_, {});
}

void PrefixedLines::add_line(std::string_view text) {
  block_ += label_;
  block_ += text_behind_label(text);
  block_ += '\n';
}

// What was shown of it is not shown again.
void PrefixedLines::add_final(const ScreenLine& line) {
  live_->release(this);
  sampled_at_.reset();
  const bool stands = live_->has_text_of(this);
  const std::string_view rest = std::string_view(line.text).substr(line.shown);
  if (!stands && line.shown != 0 && rest.empty()) return;
  if (!stands || line.shown == 0) {
    block_ += stands ? std::string(kClearLine) : live_->make_way();
    block_ += label_;
  }
  live_->forget();
  block_ += text_behind_label(rest);
  block_ += '\n';
}

std::string PrefixedLines::bar(ScreenLine& line, TimePoint now) {
  if (!live_->draws()) {
    if (!sampled_at_) sampled_at_ = now;
    if (now - *sampled_at_ < kProgressInterval) {
      unfinished_due_ = *sampled_at_ + kProgressInterval;
      return {};
    }
    sampled_at_ = now;
    return live_->make_way() + label_ + text_behind_label(line.text) + "\n";
  }
  auto way = live_->way_for_bar(*this, now);
  if (!way) return {};
  line.shown = 0;
  return way->append(kWrapOff).append(label_).append(text_behind_label(line.text)).append(kWrapOn);
}

std::string PrefixedLines::text(ScreenLine& line, TimePoint now) {
  const std::string_view rest = std::string_view(line.text).substr(line.shown);
  if (rest.empty()) return {};
  auto way = live_->way_for_text(*this, now);
  if (!way) unfinished_due_ = now + kRedrawInterval;
  if (!way) return {};
  way->append(text_behind_label(rest));
  line.shown = line.text.size();
  return std::move(*way);
}

}  // namespace ddprun
