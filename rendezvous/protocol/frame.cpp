#include "rendezvous/protocol/frame.hpp"

#include <cstdint>

#include "base/assert.hpp"
#include "rendezvous/protocol/limits.hpp"

namespace ddprun::protocol {

std::string frame(std::string_view body) {
  DDPRUN_ASSERT(!body.empty());
  DDPRUN_ASSERT(body.size() <= kFrameBytesMax);
  std::string bytes;
  bytes.reserve(kFrameHeaderBytes + body.size());
  for (int shift = 24; shift >= 0; shift -= 8) {
    bytes.push_back(static_cast<char>((body.size() >> shift) & 0xff));
  }
  bytes.append(body);
  return bytes;
}

void FrameReader::feed(std::string_view bytes) {
  if (consumed_ == buffer_.size()) {
    buffer_.clear();
    consumed_ = 0;
  } else if (consumed_ > buffer_.size() / 2) {
    // Moving only when at least half is used up keeps the whole stream linear in its bytes.
    buffer_.erase(0, consumed_);
    consumed_ = 0;
  }
  buffer_.append(bytes);
}

Result<std::optional<std::string>> FrameReader::next() {
  if (pending() < kFrameHeaderBytes) return std::optional<std::string>();
  std::uint32_t length = 0;
  for (std::size_t i = 0; i < kFrameHeaderBytes; ++i) {
    length = (length << 8) | static_cast<unsigned char>(buffer_[consumed_ + i]);
  }
  if (length == 0) return Error(ErrorKind::kUsage, "the peer sent an empty frame");
  if (length > kFrameBytesMax) {
    return Error(ErrorKind::kUsage, "the peer announced a frame of " + std::to_string(length) +
                                        " bytes; the limit is " + std::to_string(kFrameBytesMax));
  }
  if (pending() < kFrameHeaderBytes + length) return std::optional<std::string>();
  std::string body = buffer_.substr(consumed_ + kFrameHeaderBytes, length);
  consumed_ += kFrameHeaderBytes + length;
  return std::optional<std::string>(std::move(body));
}

}  // namespace ddprun::protocol
