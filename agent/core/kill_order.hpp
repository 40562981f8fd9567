// The rule that orders a kill: the stop signal to every worker's process group, patience, SIGKILL
// to every group that is left, patience again, and then a worker counts as unkillable and nobody
// waits for it. Pure, no thread rule.
#pragma once

#include "base/clock.hpp"

namespace ddprun {

/// How far the stop of a group has gone.
enum class StopStage { kNone, kSignalled, kKilled, kAbandoned };

/// What a stop is made of: the first signal and how long a worker has to obey it.
struct StopRule {
  int signal;
  Duration grace;
};

/// The next thing to do to all workers that are left.
struct StopOrder {
  StopStage stage;  // reached by doing it
  int signal;       // 0: none
  Duration grace;   // until the order after this one
};

/// The order that follows `reached`, when patience has run out or somebody who may asked for haste
/// (a second Ctrl-C). Not defined after kAbandoned.
[[nodiscard]] StopOrder next_stop_order(StopStage reached, const StopRule& rule);

/// Whether a stop signal after the first one asks for haste. SIGHUP does not: a terminal that
/// closes sends two, one from the shell to its jobs and one from the kernel when the shell has
/// gone, and systemd sends one right behind SIGTERM.
[[nodiscard]] bool is_forced_stop(int signal);

}  // namespace ddprun
