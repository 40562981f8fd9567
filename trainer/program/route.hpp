// Finds the local address that reaches a peer. Gloo must bind it, because Gloo's default (the host
// name) picks the wrong network or fails. Thread-safe. Errors: TrainerError.
#pragma once

#include <cstdint>
#include <string>

namespace ddprun::trainer {

struct Peer {
  std::string host;  ///< name or literal address
  std::uint16_t port = 0;
};

/// The source address, as a literal, that the kernel would use to reach `peer`. Sends no packet.
[[nodiscard]] std::string local_address_towards(const Peer& peer);

}  // namespace ddprun::trainer
