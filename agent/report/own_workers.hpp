// own_workers: what the agent says of a script that starts workers of its own, although ddprun has
// started them. Pure, no thread rule.
#pragma once

#include <optional>
#include <string>

#include "base/types.hpp"

namespace ddprun {

/// A process that takes part in the round as rank 0, while another one does.
struct Claimant {
  int pid = 0;
  std::optional<Rank> below{};  // the worker of this node from which it descends; none: unknown
  bool is_worker = false;       // or which it is
};
/// What ddprun has started.
struct Started {
  int workers_here = 1;
  int nodes = 1;
};
/// "rank 0 is two processes at once, ...", with what to try. Empty: no script that starts workers
/// of its own was seen, because neither process descends from a worker here, or one is a worker.
[[nodiscard]] std::string own_workers_text(const Claimant& first, const Claimant& second,
                                           Started started);

}  // namespace ddprun
