// The link between agents and a coordinator: a body, and a stream of frames in pieces. A message
// that decodes round-trips, and how the stream is cut makes no difference.
#include <string>
#include <vector>

#include "rendezvous/protocol/codec.hpp"
#include "rendezvous/protocol/frame.hpp"
#include "rendezvous/protocol/limits.hpp"
#include "tests/fuzz/target.hpp"

using namespace ddprun::protocol;
using namespace ddprun::fuzz;

namespace {

void take(std::string_view body) {
  const auto message = decode(body);
  if (!message) {
    DDPRUN_ASSERT(!message.error().sentence.empty());
    return;
  }
  const std::string encoded = encode(*message);
  const auto again = decode(encoded);
  DDPRUN_ASSERT(again && *again == *message);
  DDPRUN_ASSERT(encode(*again) == encoded);
}

/// The bodies before the first error, which ends a stream.
std::vector<std::string> bodies_of(std::string_view stream, bool in_pieces) {
  std::vector<std::string> bodies;
  FrameReader reader;
  while (!stream.empty()) {
    const std::string_view piece =
        in_pieces ? take_piece(stream) : std::exchange(stream, std::string_view());
    reader.feed(piece);
    for (;;) {
      auto body = reader.next();
      if (!body) return bodies;
      if (!*body) break;
      DDPRUN_ASSERT(!(*body)->empty() && (*body)->size() <= kFrameBytesMax);
      bodies.push_back(**std::move(body));
    }
    DDPRUN_ASSERT(reader.pending() < kFrameHeaderBytes + kFrameBytesMax);
  }
  return bodies;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = text_of(data, size);
  take(bytes);
  const auto bodies = bodies_of(bytes, true);
  DDPRUN_ASSERT(bodies == bodies_of(bytes, false));
  for (const std::string& body : bodies) take(body);
  if (bytes.empty() || bytes.size() > kFrameBytesMax) return 0;
  DDPRUN_ASSERT(bodies_of(frame(bytes), true) == std::vector{std::string(bytes)});
  return 0;
}
