// Pieces of messages for people: times of day, who a worker is, further lines.
// Pure.
#pragma once

#include <string>

#include "base/clock.hpp"
#include "base/worker_exit.hpp"

namespace ddprun {

/// "11:02:41.118Z", UTC.
[[nodiscard]] std::string time_text(WallTime when);

/// "rank 12 (local 4, pid 48213) on gpu-02".
[[nodiscard]] std::string who(const WorkerName& worker);

/// A further line of a message: "\n  when      text".
[[nodiscard]] std::string labelled(const std::string& label, const std::string& text);

}  // namespace ddprun
