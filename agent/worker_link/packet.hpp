// Packets of a worker, whose input may be hostile, the round that one gets, and the system calls of
// the link. Thread rule: none. Ownership: descriptors are the caller's. Errors: a value.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/environment.hpp"
#include "base/result.hpp"
#include "base/types.hpp"
#include "worker_api/link_page.hpp"

namespace ddprun::worker_link {

// Connections that wait in the kernel's queue; a worker beyond that tries again after a second.
inline constexpr int kBacklog = 256;

struct Hello {};
struct Look {};
struct Ready {};
struct Checkpoint {
  std::int64_t step = 0;
  std::string path{};  // as it was sent, without NUL
};
struct Survives {};
struct Joined {
  Round round{};
};
using Packet = std::variant<Hello, Look, Ready, Checkpoint, Survives, Joined>;

/// None: malformed, or of another version. Pure.
[[nodiscard]] std::optional<Packet> parse_packet(std::span<const std::uint8_t> bytes);

/// What a worker that survives is to take part in.
struct PushedRound {
  Round number{};
  Environment variables{};  // as a worker finds them that is started for this round
};
/// Pure. None: the variables are more than kVariablesBytesMax.
[[nodiscard]] std::optional<std::vector<std::uint8_t>> round_packet(const PushedRound& round);

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
