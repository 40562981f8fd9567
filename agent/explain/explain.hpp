// explain: what the events of a run's nodes tell afterwards: the first cause, what was stopped
// because of it, what each phase of the recovery cost, and the share of the time in which all ranks
// ran. The same files give the same text, in whatever order they come. Pure.
#pragma once

#include <string>
#include <vector>

#include "agent/explain/records.hpp"
#include "base/result.hpp"

namespace ddprun::explain {

/// Several lines about one run. Errors: kUsage for files of several runs.
[[nodiscard]] Result<std::string> explain(std::vector<NodeRecord> nodes);

}  // namespace ddprun::explain
