// Length-prefixed frames of the agent link: u32 big-endian length, then that many bytes.
// Incremental: bytes may arrive split anywhere. Pure, single owner. Errors: a length of 0 or above
// kFrameBytesMax ends the stream for good, before anything of that frame is stored.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace ddprun::protocol {

inline constexpr std::size_t kFrameHeaderBytes = 4;

/// `body` preceded by its length. The body must be 1..kFrameBytesMax bytes long (asserted; encode()
/// guarantees it).
[[nodiscard]] std::string frame(std::string_view body);

class FrameReader {
 public:
  /// Takes received bytes; holds at most one frame and the bytes of one call.
  void feed(std::string_view bytes);
  /// The next complete body, nothing if more bytes are needed, or the error that ends this stream.
  [[nodiscard]] Result<std::optional<std::string>> next();
  /// Bytes held that are not yet part of a returned frame.
  [[nodiscard]] std::size_t pending() const { return buffer_.size() - consumed_; }

 private:
  std::string buffer_;
  std::size_t consumed_ = 0;
};

}  // namespace ddprun::protocol
