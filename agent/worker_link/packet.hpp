// Packets of a worker, parsed, whose input may be hostile. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "worker_api/link_page.hpp"

namespace ddprun::worker_link {

struct Hello {};
struct Look {};
struct Ready {};
struct Checkpoint {
  std::int64_t step = 0;
  std::string path{};  // as it was sent, without NUL
};
using Packet = std::variant<Hello, Look, Ready, Checkpoint>;

/// None: malformed, or of another version.
[[nodiscard]] std::optional<Packet> parse_packet(std::span<const std::uint8_t> bytes);

}  // namespace ddprun::worker_link
