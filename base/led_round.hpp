// LedRound: after which settled round a coordinator decides (docs/FAILOVER.md).
#pragma once

#include <string>

#include "base/types.hpp"

namespace ddprun {

struct LedRound {
  Round round{0};
  std::string origin;  // the author of the run's first round; empty: no node knew
};

}  // namespace ddprun
