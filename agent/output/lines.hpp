// The lines that the bytes of a stream make, split anywhere: behind a pipe, and on a terminal.
// Pure: time is an argument. Thread rule: one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"

namespace ddprun {

// One line of a tee'd stream in memory. What is longer is cut on the console (never in the file),
// with a note that says how much is missing.
inline constexpr std::size_t kLineBytesMax = 256 * 1024;
// How often the state of a progress bar (text that ends in \r) is shown while its line is
// unfinished.
inline constexpr std::chrono::seconds kProgressInterval{10};

/// Complete lines.
class LineAssembler {
 public:
  explicit LineAssembler(Duration interval = kProgressInterval) : interval_(interval) {}
  /// Receives each line without its newline; the view is valid during the call.
  using Emit = std::function<void(std::string_view line)>;

  /// Accepts any piece of the stream. A line ends at \n. As on a terminal, \r returns to the start
  /// of the line: only the text after the last \r is shown, and a \r directly before \n is ignored.
  /// `sample` receives the state of an unfinished line that uses \r, once per interval. Of a line
  /// longer than kLineBytesMax the first part is shown, with the number of missing bytes.
  void feed(std::string_view bytes, TimePoint now, const Emit& emit, const Emit& sample);
  /// The stream has ended: emits an unfinished line.
  void finish(const Emit& emit);

 private:
  void append(std::string_view piece);
  void add_bounded(std::string_view text);
  void take_sample(std::string_view piece, TimePoint now, const Emit& emit);
  void emit_pending(const Emit& emit);

  Duration interval_;
  std::string pending_;                  // the unfinished line; a final \r is kept as a marker
  std::uint64_t cut_bytes_ = 0;          // omitted bytes of the unfinished line
  std::optional<TimePoint> sampled_at_;  // when last shown; nullopt if it uses no \r
};

// A stream moves its cursor up by at most so many lines.
inline constexpr std::size_t kRedrawnLinesMax = 16;

struct ScreenLine {
  std::string text{};           // with its colours, without other sequences
  std::size_t shown = 0;        // bytes of it that the owner has shown; 0 again when it is redrawn
  std::uint64_t cut_bytes = 0;  // beyond kLineBytesMax
  std::string colours{};        // of the text to come
  bool is_bar = false;          // it was redrawn
  bool is_at_start = false;     // text to come replaces it
  bool was_final = false;       // it left before the cursor came back to it
};

/// What one stream leaves on a terminal: the lines that are final, and those that it may still
/// redraw, because it returns to their start (\r) or moves the cursor up (nested progress bars).
class ScreenLines {
 public:
  /// Receives each line when it is final.
  using Emit = std::function<void(const ScreenLine& line)>;

  /// Accepts any piece of the stream. Lines are final when they are as far above the cursor as the
  /// stream has never moved it up: at once, unless it draws several bars.
  void feed(std::string_view bytes, const Emit& emit);
  /// The lines above the cursor are final: the stream has been silent for a while.
  void settle(const Emit& emit);
  /// The stream has ended: all lines are final.
  void finish(const Emit& emit);

  /// Whether there is something for settle().
  [[nodiscard]] bool is_unsettled() const { return cursor_ > 0; }
  /// The line that was written last, if it is not final and there is something to see.
  [[nodiscard]] ScreenLine* unfinished();
  /// Whether unfinished() may be redrawn rather than continued.
  [[nodiscard]] bool draws() const;

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  void write(std::string_view text);
  void obey(std::string_view sequence);
  void end_line(const Emit& emit);
  void move_up(std::size_t lines);
  void erase_line(bool whole);
  void erase_below();
  void leave(const Emit& emit);

  std::deque<ScreenLine> lines_{1};
  std::size_t cursor_ = 0;
  std::size_t height_ = 1;  // lines that the stream redraws
  std::size_t last_ = kNone;
  std::string sequence_;  // the beginning of one that is cut
};

}  // namespace ddprun
