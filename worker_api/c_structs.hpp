// What the C interface fills for its callers.
#pragma once

#include <cstddef>
#include <string>

#include "worker_api/worker.h"
#include "worker_api/worker.hpp"

namespace ddprun {

/// With a final NUL; cut where there is no room.
void copy_sentence(const std::string& sentence, char* problem, std::size_t size);
/// As many fields as the caller has. Returns what is wrong, or nothing.
[[nodiscard]] std::string copy_worker(ddprun_worker* worker, const WorkerEnvironment& environment);

}  // namespace ddprun
