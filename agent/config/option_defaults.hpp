// Defaults and limits of options; the help has the same figures from here.
#pragma once

#include <chrono>

#include "base/clock.hpp"

namespace ddprun {

// The template of --warm starts so long after the workers: until then the processors are theirs.
inline constexpr Duration kWarmAfterDefault = std::chrono::seconds(30);
// A rank that survives (--restart=failed) has this long to take the next round, unless
// --rejoin-timeout says otherwise; then it is killed and started again.
inline constexpr Duration kRejoinTimeoutDefault = std::chrono::seconds(60);
inline constexpr int kSparesMax = 1024;  // --spares
// SIGKILL follows SIGTERM after this, unless --shutdown-timeout says otherwise.
inline constexpr Duration kShutdownTimeoutDefault = std::chrono::seconds(30);
// --failure-grace: what ranks catch, print and save takes milliseconds to a second; those that wait
// for the lost one without an end are stopped then.
inline constexpr Duration kFailureGraceDefault = std::chrono::seconds(1);
// After a success, what a worker left behind has this long to end by itself, unless
// --straggler-timeout says otherwise; then SIGTERM, and after kStragglerGrace SIGKILL.
inline constexpr Duration kStragglerTimeoutDefault = std::chrono::seconds(10);

}  // namespace ddprun
