// The last bytes of a stream or a file, for the report. Of a very long line its beginning and its
// end are kept, so that it does not drive the lines before it out. Thread rule: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

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

}  // namespace ddprun
