// The system calls of the link: listening, who asks, receiving a packet with a descriptor. Thread
// rule: none. Ownership: descriptors are the caller's. Errors: a value.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "agent/worker_link/packet.hpp"
#include "base/result.hpp"
#include "worker_api/link_page.hpp"

namespace ddprun::worker_link {

/// Listens at `path`; the file is the caller's to remove.
[[nodiscard]] Result<int> listen(const std::string& path);

/// The process at the other end; none if it is another user's, or in a PID namespace that this
/// process does not see.
[[nodiscard]] std::optional<int> peer_of(int socket);

/// What one receive has brought; `page` is the caller's, -1: none.
struct Received {
  enum class State { kNothing, kPacket, kEnd };
  State state = State::kNothing;
  std::optional<Packet> packet{};  // none: malformed
  int page = -1;
};
[[nodiscard]] Received receive(int socket);

}  // namespace ddprun::worker_link
