// What a coordinator in a `ddprun` knows of those before and after it (docs/FAILOVER.md), and what
// it asks of its process. Plain data.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "rendezvous/round/authority.hpp"

namespace ddprun::coordinator {

/// Called with the address and port of another coordinator of the run, which leads a run that began
/// apart and does not know that it is to yield to this one.
using MeetRival = std::function<void(const std::string& host, std::uint16_t port)>;

struct Succession {
  round::SuccessionOptions options{};
  /// Of `--hosts`, or a scheduler's list: how it begins, "host:port"; else empty.
  std::string list_begins{};
  /// This candidate got no majority: it is to be destroyed, later. May be empty.
  std::function<void(const std::string& reason)> on_abdicate{};
};

}  // namespace ddprun::coordinator
