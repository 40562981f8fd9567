// HostPlan: whether this node runs the coordinator of its run. Plain data, no thread rule.
#pragma once

#include <cstdint>
#include <string>

namespace ddprun {

/// This node may be, or has to be, the one that runs the coordinator.
struct HostPlan {
  enum class Need { kMay, kMust };  // kMay: whoever binds the port first is the host
  Need need = Need::kMay;
  std::string bind;  // an address literal; empty: every address of this machine, v4 and v6
  std::uint16_t port = 0;
};

}  // namespace ddprun
