// The order of a stop: where a failure ends the run, a time in which workers may end by themselves;
// the stop signal to every worker's process group, a grace period, after a failure a moment in
// which workers that did not obey write their stacks, SIGKILL to workers and what they started but
// for processes that end with their pipe, a moment later to these as well, a second period, and
// then a worker counts as unkillable and ddprun gives up on it. Pure.
#pragma once

#include <chrono>

#include "base/clock.hpp"

namespace ddprun {

// Python workers that outlived their grace have so long to write their stacks before SIGKILL.
inline constexpr Duration kStacksBeforeKill = std::chrono::milliseconds(500);

/// How far the stop of a group has gone.
enum class StopStage { kNone, kSpared, kSignalled, kAsked, kKilled, kSwept, kAbandoned };

/// What a stop is made of: the first signal and how long a worker has to obey it.
struct StopRule {
  int signal;
  Duration grace;
  bool stacks = false;  // those that outlive it are asked for their stacks, unless it is 0
  Duration spare{};     // --failure-grace: the time before the first signal; 0: none
};

/// The next thing to do to all workers that are left.
struct StopOrder {
  StopStage stage;  // reached by doing it
  int signal;       // 0: none
  Duration grace;   // until the order after this one
};

/// The order that follows `reached`, when the grace period expires or a second signal demands an
/// immediate stop (a second Ctrl-C). Not defined after kAbandoned.
[[nodiscard]] StopOrder next_stop_order(StopStage reached, const StopRule& rule);

/// Whether a stop signal after the first one demands an immediate stop. SIGHUP does not: a terminal
/// that closes sends two, one from the shell to its jobs and one from the kernel when the shell has
/// gone, and systemd sends one right behind SIGTERM.
[[nodiscard]] bool is_forced_stop(int signal);

}  // namespace ddprun
