// WriteTimes: when the last bytes of a stream were written, to set them in order with those of
// another one. Pure, no thread rule.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

#include "base/clock.hpp"

namespace ddprun {

class WriteTimes {
 public:
  void add(TimePoint now, std::string_view bytes);
  void clear() { pieces_.clear(); }
  /// Whether the stream shows what the program does: it was written line by line, at several
  /// moments of a second or more. Python keeps a stdout that is no terminal back, and writes it in
  /// blocks, the last one as it exits: when those lines were printed is not known.
  [[nodiscard]] bool is_live() const;

  struct Stream {
    std::string tail;
    const WriteTimes& times;
  };
  /// The last bytes of both, in the order in which they were written; a line that one of them has
  /// begun is ended before the other one.
  [[nodiscard]] static std::string merged(const Stream& one, const Stream& other);

 private:
  struct Piece {
    TimePoint at;
    std::size_t bytes = 0;
    bool ends_line = false;
  };
  std::deque<Piece> pieces_;
};

}  // namespace ddprun
