// PrefixedLines: the output of one worker as it is shown among that of others: whole lines, each
// with a label of its rank, and a progress bar (text that ends in \r) redrawn in place. LiveLine:
// the last line of the terminal that they share. Pure: time is an argument. Thread rule: one
// thread. Ownership: a LiveLine outlives its streams.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "agent/output/lines.hpp"
#include "base/clock.hpp"

namespace ddprun {

// How often the state of a progress bar is redrawn in place on a terminal; there a line without \r
// (a prompt) is shown so long after its first byte, too.
inline constexpr std::chrono::milliseconds kRedrawInterval{250};
// An unfinished line of another rank is interrupted by one when nothing was added to it for so
// long.
inline constexpr std::chrono::seconds kInterruptAfter{1};
// The lines above the cursor of a stream that moves it up are final after so much silence.
inline constexpr std::chrono::seconds kSettleAfter{1};

/// To the beginning of the terminal's line, with nothing left there.
inline constexpr std::string_view kClearLine = "\r\x1b[K";

/// "host:3| ", with a colour of the rank.
[[nodiscard]] std::string rank_label(const std::string& host, int rank, bool coloured);

/// A line of a worker as it stands behind a label: without the sequences that move the cursor or
/// clear the screen, and with its colours ended.
[[nodiscard]] std::string text_behind_label(std::string_view line);

class PrefixedLines;

/// What stands on the last line of the terminal. One bar at a time is redrawn there, so that those
/// of several ranks do not replace each other; the others are shown when their line ends. Text that
/// has not ended its line, a prompt perhaps, stays there, and others begin below it.
class LiveLine {
 public:
  /// The terminal takes no sequences: bars are lines.
  void draw_nothing() { draws_ = false; }
  [[nodiscard]] bool draws() const { return draws_; }
  /// What to write before other text: takes the bar away, or ends the unfinished line.
  [[nodiscard]] std::string make_way();
  /// The same before raw text of the rank with that label, of which more may come on the same line.
  [[nodiscard]] std::string make_way_for_raw(std::string_view bytes, const std::string& label,
                                             TimePoint now);
  /// Whole lines of another kind were written below.
  void forget() { stands_ = Stands::kNothing; }

 private:
  friend class PrefixedLines;
  enum class Stands { kNothing, kBar, kText, kRaw };
  /// What to write before a bar, or more of an unfinished line; none: another one has the place.
  [[nodiscard]] std::optional<std::string> way_for_bar(const PrefixedLines& stream, TimePoint now);
  [[nodiscard]] std::optional<std::string> way_for_text(const PrefixedLines& stream, TimePoint now);
  /// Whether an unfinished line of the stream stands there.
  [[nodiscard]] bool has_text_of(const PrefixedLines* stream) const;
  void release(const PrefixedLines* stream);

  bool draws_ = true;
  Stands stands_ = Stands::kNothing;
  const PrefixedLines* text_of_ = nullptr;  // of kText
  std::string label_;                       // of kText and kRaw
  TimePoint written_at_{};                  // of the same
  const PrefixedLines* bar_of_ = nullptr;   // whose bar has the place
  TimePoint drawn_at_{};
};

class PrefixedLines {
 public:
  /// `live`: of the terminal; null where there is none, and a bar is a line every
  /// kProgressInterval.
  explicit PrefixedLines(LiveLine* live) : live_(live) {}
  PrefixedLines(const PrefixedLines&) = delete;
  PrefixedLines& operator=(const PrefixedLines&) = delete;
  ~PrefixedLines();

  void set_label(std::string label) { label_ = std::move(label); }
  /// What to write for any piece of the stream, perhaps nothing.
  [[nodiscard]] std::string feed(std::string_view bytes, TimePoint now);
  /// When to call show_unfinished(); none: nothing waits for it.
  [[nodiscard]] std::optional<TimePoint> due() const;
  /// What to write although its line has not ended: a bar or a prompt.
  [[nodiscard]] std::string show_unfinished(TimePoint now);
  /// The stream has ended.
  [[nodiscard]] std::string finish();

 private:
  friend class LiveLine;
  void add_line(std::string_view text);
  void add_final(const ScreenLine& line);
  [[nodiscard]] std::string bar(ScreenLine& line, TimePoint now);
  [[nodiscard]] std::string text(ScreenLine& line, TimePoint now);

  LiveLine* live_;
  std::string label_;
  LineAssembler lines_;  // without a terminal
  ScreenLines screen_;   // on one
  std::string block_;
  TimePoint fed_at_{};
  std::optional<TimePoint> unfinished_due_{};
  std::optional<TimePoint> settle_due_{};
  std::optional<TimePoint> sampled_at_{};  // a bar, where none is drawn
};

}  // namespace ddprun
