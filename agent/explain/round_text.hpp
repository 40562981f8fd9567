// One round of a run in words: who failed, what was stopped because of it, and what the recovery
// cost. Pure.
#pragma once

#include <string>

#include "agent/explain/recovery.hpp"
#include "agent/explain/run_facts.hpp"

namespace ddprun::explain {

/// "3.2 ms", "1 min 5 s".
[[nodiscard]] std::string ms_text(double ms);
/// The ranks that were stopped because of what ended a round: "3 of 4 ranks, on 2 nodes".
[[nodiscard]] std::string blast_radius(const Nodes& nodes, int round);
/// Several lines, the first one with the round's number and size.
[[nodiscard]] std::string round_text(const Nodes& nodes, const Timeline& timeline, int round);

}  // namespace ddprun::explain
