// LineAssembler: assembles the bytes of one stream, split anywhere, into complete lines. Pure: time
// is an argument. Thread rule: one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
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

}  // namespace ddprun
