// Times of one round and of what follows it, over all nodes with a record. Each is a difference on
// one node's clock; of several nodes the one that took longest counts. Pure.
#pragma once

#include <vector>

#include "agent/core/explain/records.hpp"

namespace ddprun::explain {

/// When all ranks of a round ran: on one node from the last start, or when those that were kept
/// have taken the round, to the first sign of the end. Of several nodes the least counts; one whose
/// record breaks off does not bound it.
struct Health {
  Moment since{};  // none: they never did
  Moment ms{};     // none: no record has the end
};
[[nodiscard]] Health health_in(const std::vector<NodeRecord>& nodes, int round);

/// From a round's first sign of the end until all ranks of the next one run.
struct Recovery {
  Moment detect{};      // from the exit to the report of the failure, on its node
  Moment stop{};        // from the first signal until nothing is waited for
  Moment rendezvous{};  // until the next round was decided, after the stop
  Moment start{};       // until the first worker is there: directories, files, the store
  Moment spawn{};       // until all are
  Moment join{};        // until those that were kept have taken the round
  Moment whole{};
};
[[nodiscard]] Recovery recovery_after(const std::vector<NodeRecord>& nodes, int round);

}  // namespace ddprun::explain
