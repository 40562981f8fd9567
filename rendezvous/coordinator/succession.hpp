// What a coordinator in a `ddprun` knows of those before and after it (docs/FAILOVER.md), and what
// it asks of its process. Plain data.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "rendezvous/round/succession.hpp"

namespace ddprun::coordinator {

struct Succession {
  round::SuccessionOptions options{};
  /// This candidate got no majority: it is to be destroyed, later. May be empty.
  std::function<void(const std::string& reason)> on_abdicate{};
};

}  // namespace ddprun::coordinator
