// Pieces of messages for people: times of day, who a worker is, further lines.
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/worker_exit.hpp"

namespace ddprun {

/// "11:02:41.118Z", UTC.
[[nodiscard]] std::string time_text(WallTime when);

/// "rank 12 (local 4, pid 48213) on gpu-02".
[[nodiscard]] std::string who(const WorkerName& worker);

/// "rank 3 last finished step 1041, others 1042", where they say so; empty: none does.
[[nodiscard]] std::string steps_text(Rank rank, std::optional<std::int64_t> step,
                                     const std::vector<std::int64_t>& others);

/// A further line of a message: "\n  when      text".
[[nodiscard]] std::string labelled(const std::string& label, const std::string& text);

}  // namespace ddprun
