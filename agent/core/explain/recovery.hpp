// Times of one round and of what follows it, over all nodes with a record. Each is a difference on
// one node's clock; of several nodes the one that took longest counts. Pure.
#pragma once

#include <vector>

#include "agent/core/explain/records.hpp"

namespace ddprun::explain {

/// How long all ranks ran: on one node from the last start to the first sign of the end, of several
/// nodes the least. 0 if they never did.
[[nodiscard]] double healthy_ms(const std::vector<NodeRecord>& nodes, int round);

/// From a round's first sign of the end until all ranks of the next one run.
struct Recovery {
  Moment detect{};      // from the exit to the report of the failure, on its node
  Moment stop{};        // from the first signal until nothing is waited for
  Moment rendezvous{};  // until the next round was decided, after the stop
  Moment start{};       // until the first worker is there: directories, files, the store
  Moment spawn{};       // until all are
  Moment whole{};
};
[[nodiscard]] Recovery recovery_after(const std::vector<NodeRecord>& nodes, int round);

}  // namespace ddprun::explain
