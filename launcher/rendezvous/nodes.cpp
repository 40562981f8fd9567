#include "launcher/rendezvous/nodes.hpp"

#include "base/count_text.hpp"
#include "launcher/limits.hpp"
#include "launcher/options/values.hpp"
#include "launcher/usage.hpp"

namespace ddprun {

Result<NodeRange> parse_nodes(const Origin& origin) {
  const auto colon = origin.text.find(':');
  const auto min = parse_integer(origin.text.substr(0, colon));
  const auto max = colon == std::string::npos ? min : parse_integer(origin.text.substr(colon + 1));
  if (!min || !max || *min <= 0 || *min > *max) {
    return usage(origin.quoted() + " is neither a number of nodes nor MIN:MAX with 0 < MIN <= MAX");
  }
  if (*max > kNodesMax) {
    return usage(origin.quoted() + ": a run has at most " + std::to_string(kNodesMax) + " nodes");
  }
  return NodeRange{static_cast<int>(*min), static_cast<int>(*max)};
}

std::string text_of(const NodeRange& nodes) {
  return count_text(nodes.min, nodes.max, "node");
}

}  // namespace ddprun
