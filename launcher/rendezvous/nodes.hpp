// --nnodes: how many nodes a run has. Pure, no thread rule.
#pragma once

#include <string>

#include "base/result.hpp"
#include "launcher/options/settings.hpp"

namespace ddprun {

/// 0 < min <= max <= kNodesMax.
struct NodeRange {
  int min = 1;
  int max = 1;
};

/// N or MIN:MAX.
[[nodiscard]] Result<NodeRange> parse_nodes(const Settings& settings);

/// "4 nodes", "2 to 4 nodes", for sentences.
[[nodiscard]] std::string text_of(const NodeRange& nodes);

}  // namespace ddprun
