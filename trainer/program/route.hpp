// Which of this machine's addresses reaches a peer: what Gloo must bind, since its own guess (the
// host name) picks the wrong network or fails. Free functions, any thread. Errors:
// TrainerError.
#pragma once

#include <cstdint>
#include <string>

namespace ddprun::trainer {

struct Peer {
  std::string host;  ///< name or literal address
  std::uint16_t port = 0;
};

/// The source address the kernel would use towards `peer`, as a literal. Sends nothing.
[[nodiscard]] std::string local_address_towards(const Peer& peer);

}  // namespace ddprun::trainer
