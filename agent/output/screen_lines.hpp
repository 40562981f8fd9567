// ScreenLines: what one stream leaves on a terminal: the lines that are final, and those that it
// may still redraw, because it returns to their start (\r) or moves the cursor up (nested progress
// bars). Pure. Thread rule: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

namespace ddprun {

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
