// complaint: what a rank that failed said about the others in its last lines, as PyTorch's Gloo,
// NCCL and store print it. Read from the end of its output once it has failed, so that healthy
// output costs nothing. Pure.
#pragma once

#include <optional>
#include <string_view>

#include "base/exit_status.hpp"
#include "base/rank_facts.hpp"

namespace ddprun {

/// The complaint that the last lines end with. None if the rank then continued to work, or raised
/// an exception of its own.
[[nodiscard]] std::optional<Complaint> find_complaint(std::string_view tail);

/// The text in which a worker says why it ended: of its stderr, unless that has nothing but what
/// libraries print around an end, and stdout has more.
[[nodiscard]] std::string account_of(std::string err, const std::string& out);

/// Whether a complaint can explain such an end: a signal from outside does not follow from one.
[[nodiscard]] bool follows_from_complaint(const ExitStatus& status);

}  // namespace ddprun
