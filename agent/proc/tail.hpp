// The last bytes of a stream or a file, for the report. Of a very long line its beginning and its
// end are kept, so that it does not drive the lines before it out. Thread rule: none.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ddprun {

class Tail {
 public:
  explicit Tail(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  /// Appends; discards all but the last `bytes_max` bytes.
  void append(std::string_view bytes);
  [[nodiscard]] std::string text() const;

 private:
  std::size_t bytes_max_;
  std::string kept_;  // up to twice as long, to amortize the cost of discarding
};

/// The last `bytes_max` bytes of a regular file; empty if it cannot be read, or is anything else.
/// Blocks as long as the file system does.
[[nodiscard]] std::string tail_of_file(const std::string& path, std::size_t bytes_max);

}  // namespace ddprun
