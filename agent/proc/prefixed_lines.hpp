// PrefixedLines: the output of one worker as it is shown among that of others: whole lines, each
// with a label of its rank, and a progress bar (text that ends in \r) redrawn in place. LiveLine:
// the last line of the terminal that they share. Pure: time is an argument. Thread rule: one
// thread. Ownership: a LiveLine outlives its streams.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "agent/proc/line_assembler.hpp"
#include "base/clock.hpp"

namespace ddprun {

/// To the beginning of the terminal's line, with nothing left there.
inline constexpr std::string_view kClearLine = "\r\x1b[K";

/// "host:3| ", with a colour of the rank.
[[nodiscard]] std::string rank_label(const std::string& host, int rank, bool coloured);

/// A line of a worker as it stands behind a label: without the sequences that move the cursor or
/// clear the screen, and with its colours ended.
[[nodiscard]] std::string text_behind_label(std::string_view line);

class PrefixedLines;

/// What stands on the last line of the terminal. One bar at a time is redrawn there, so that those
/// of several ranks do not replace each other; the others are shown when their line ends.
class LiveLine {
 public:
  /// What to write before other text: takes the bar away, or ends raw text.
  [[nodiscard]] std::string make_way();
  /// The same before raw text, of which more may come on the same line.
  [[nodiscard]] std::string make_way_for_raw(std::string_view bytes);

 private:
  friend class PrefixedLines;
  [[nodiscard]] bool take(const PrefixedLines* stream, TimePoint now);
  void release(const PrefixedLines* stream);

  const PrefixedLines* owner_ = nullptr;
  TimePoint drawn_at_{};
  bool shows_bar_ = false;
  bool in_raw_line_ = false;
};

class PrefixedLines {
 public:
  /// `live`: of the terminal; null where there is none, and a bar is a line every
  /// kProgressInterval.
  explicit PrefixedLines(LiveLine* live);
  PrefixedLines(const PrefixedLines&) = delete;
  PrefixedLines& operator=(const PrefixedLines&) = delete;
  ~PrefixedLines();

  void set_label(std::string label) { label_ = std::move(label); }
  /// What to write for any piece of the stream, perhaps nothing.
  [[nodiscard]] std::string feed(std::string_view bytes, TimePoint now);
  /// The stream has ended.
  [[nodiscard]] std::string finish();

 private:
  void add_line(std::string_view line);
  [[nodiscard]] std::string take_block();

  LiveLine* live_;
  std::string label_;
  LineAssembler lines_;
  std::string block_;
};

}  // namespace ddprun
