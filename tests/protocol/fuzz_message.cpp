// libFuzzer: arbitrary bytes as a stream of frames; a decoded message must round-trip.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "rendezvous/protocol/codec.hpp"
#include "rendezvous/protocol/frame.hpp"

using namespace ddprun::protocol;

namespace {

void take(std::string_view body) {
  const auto message = decode(body);
  if (!message) return;
  const auto again = decode(encode(*message));
  if (!again || !(*again == *message)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  take(bytes);
  FrameReader reader;
  reader.feed(bytes);
  for (;;) {
    const auto body = reader.next();
    if (!body || !*body) break;
    take(**body);
  }
  return 0;
}
