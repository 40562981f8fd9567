#include "tests/store/replay.hpp"

#include <string>

#include "base/assert.hpp"
#include "tests/store/harness.hpp"

namespace ddprun::store {

namespace {

// Small enough that inputs of a few hundred bytes reach every limit.
Limits small_limits() {
  Limits limits;
  limits.key_bytes = 64;
  limits.value_bytes = 4096;
  limits.keys_per_request = 32;
  limits.request_bytes = 8192;
  limits.keys = 64;
  limits.waits = 64;
  limits.names_per_turn = 4;
  limits.store_bytes = 32 * kKiB;
  limits.reply_bytes = 16 * kKiB;
  return limits;
}

constexpr int kPeers = 4;

}  // namespace

void replay(std::span<const std::uint8_t> input) {
  Harness store(small_limits());
  bool open[kPeers] = {};
  while (!input.empty()) {
    const std::uint8_t head = input.front();
    input = input.subspan(1);
    const int client = head & 3;
    const std::size_t length = std::min<std::size_t>(input.size(), head >> 3);
    const std::string piece(input.begin(), input.begin() + static_cast<std::ptrdiff_t>(length));
    input = input.subspan(length);
    if (client < 2) {
      store.send_raw(client, piece);
    } else {
      store.send(client, piece);
    }
    open[client] = true;
    for (int other = 0; other < kPeers; ++other) {
      if (open[other]) store.receive(other);
    }
    // Up to one page above the limit: blocks are charged with their actual size.
    DDPRUN_ASSERT(store.memory.used() <= store.limits.store_bytes + 4096);
    DDPRUN_ASSERT(store.store.names() <= store.limits.keys);
    DDPRUN_ASSERT(store.store.waits() <= store.limits.waits);
    DDPRUN_ASSERT(store.copied.used() == 0);
    if ((head & 4) != 0) {
      store.disconnect(client);
      open[client] = false;
    }
  }
  for (int client = 0; client < kPeers; ++client) {
    if (open[client]) store.disconnect(client);
  }
  DDPRUN_ASSERT(store.store.waits() == 0);
}

}  // namespace ddprun::store
