// LineAssembler: the bytes of one stream, however they were cut by write() and read(), as whole
// lines. Pure: time is an argument. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"

namespace ddprun {

class LineAssembler {
 public:
  /// Gets each line without its newline; the view is valid during the call.
  using Emit = std::function<void(std::string_view line)>;

  /// Takes any piece of the stream. A line is what stands before \n. Within it \r goes back to its
  /// start, as on a terminal: only the text after the last \r is shown, and a \r right before \n is
  /// no text. While a line that uses \r is unfinished its state is shown every kProgressInterval.
  /// Of a line longer than kLineBytesMax the first part is shown with a note how many bytes are
  /// missing.
  void feed(std::string_view bytes, TimePoint now, const Emit& emit);
  /// The stream has ended: an unfinished line becomes one.
  void finish(const Emit& emit);

 private:
  void append(std::string_view piece);
  void add_bounded(std::string_view text);
  void sample(std::string_view piece, TimePoint now, const Emit& emit);
  void emit_pending(const Emit& emit);

  std::string pending_;                  // the unfinished line; a final \r is kept as a mark
  std::uint64_t cut_bytes_ = 0;          // bytes of the unfinished line that did not fit
  std::optional<TimePoint> sampled_at_;  // when its state was shown; unset: it uses no \r
};

}  // namespace ddprun
