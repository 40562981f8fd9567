#include "base/worker_exit.hpp"

namespace ddprun {

bool is_first_failure(const ExitOrder& exit, const std::optional<TimePoint>& first) {
  if (exit.status.success() || exit.sent_signal != 0) return false;
  return !first || exit.at < *first;
}

}  // namespace ddprun
