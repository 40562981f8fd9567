// The rows of the option table (option_table.cpp) about the times of a stop: the table alone is as
// long as a file may be.
#pragma once

#include "launcher/options/option_table.hpp"

namespace ddprun {

inline constexpr OptionSpec kShutdownTimeoutRow{
    .id = OptionId::kShutdownTimeout,
    .name = "shutdown-timeout",
    .variable = OptionVariable::kPet,
    .group = OptionGroup::kRestarts,
    .metavar = "TIME",
    .help =
        "From the stop signal to SIGKILL, at every stop: 90, 90s or 10m. Unset: "
        "TORCH_ELASTIC_SHUTDOWN_TIMEOUT, else 30.",
    .fallback = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT",
    .unset = "30"};

inline constexpr OptionSpec kFailureGraceRow{
    .id = OptionId::kFailureGrace,
    .name = "failure-grace",
    .variable = OptionVariable::kDdprun,
    .group = OptionGroup::kRestarts,
    .metavar = "TIME",
    .preset = "1",
    .help =
        "After a failure that ends the run: how long the other ranks, on every node, may "
        "continue, to end by themselves, before the stop signal. 0: they are stopped at once."};

inline constexpr OptionSpec kStragglerTimeoutRow{
    .id = OptionId::kStragglerTimeout,
    .name = "straggler-timeout",
    .variable = OptionVariable::kPet,
    .group = OptionGroup::kRestarts,
    .metavar = "TIME",
    .preset = "10",
    .help =
        "After a success: how long processes that workers left may continue without progress, "
        "then SIGTERM, and 2 s later SIGKILL. 0: they are stopped at once."};

}  // namespace ddprun
