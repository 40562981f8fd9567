// The last bytes of a stream or a file, for the report. Of a very long line its beginning and its
// end are kept, so that it does not drive the lines before it out. Thread rule: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "base/clock.hpp"

namespace ddprun {

class Tail {
 public:
  explicit Tail(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  /// Appends; discards all but the last `bytes_max` bytes.
  void append(std::string_view bytes);
  void clear() { kept_.clear(); }
  [[nodiscard]] std::string text() const;

 private:
  std::size_t bytes_max_;
  std::string kept_;  // up to twice as long, to amortize the cost of discarding
};

/// The last `bytes_max` bytes of a regular file, of those after the first `before`; empty if it
/// cannot be read, or is anything else. Blocks as long as the file system does.
[[nodiscard]] std::string tail_of_file(const std::string& path, std::size_t bytes_max,
                                       std::uint64_t before = 0);
/// 0 for what is no regular file. Blocks in the same way.
[[nodiscard]] std::uint64_t size_of_file(const std::string& path);

/// When the last bytes of a stream were written, to set them in order with those of another one.
/// Pure.
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
