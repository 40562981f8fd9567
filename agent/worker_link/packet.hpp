// Packets of a worker, parsed, whose input may be hostile; and the round that one gets. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/environment.hpp"
#include "base/types.hpp"
#include "worker_api/link_page.hpp"

namespace ddprun::worker_link {

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

/// None: malformed, or of another version.
[[nodiscard]] std::optional<Packet> parse_packet(std::span<const std::uint8_t> bytes);

/// What a worker that survives is to take part in.
struct PushedRound {
  Round number{};
  Environment variables{};  // as a worker finds them that is started for this round
};
/// None: the variables are more than kVariablesBytesMax.
[[nodiscard]] std::optional<std::vector<std::uint8_t>> round_packet(const PushedRound& round);

}  // namespace ddprun::worker_link
