// RunFacts: the records of a run's nodes tell together who failed in a round and why it ended, and
// how the run did. Pure functions.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "agent/explain/records.hpp"

namespace ddprun::explain {

[[nodiscard]] std::set<int> rounds_of(const Nodes& nodes);
/// The record that one of its nodes has of the round; null: none has.
[[nodiscard]] const RoundRecord* any_record(const Nodes& nodes, int round);
[[nodiscard]] std::string text_of(const Failure& failure);
/// The text tells who failed and how. Ranks that were given up have not failed: none of them is
/// named.
[[nodiscard]] std::string failure_text(const Failure& failure);
/// The coordinator's finding about all ranks of a round, with the rank that failed first: it may be
/// a witness of the cause. Null: the first failure is the cause.
[[nodiscard]] const Failure* finding_in(const Nodes& nodes, int round);
/// The failures that the nodes saw in a round; first the one that a finding or else `reason` names.
[[nodiscard]] std::vector<Failure> failures_in(const Nodes& nodes, int round,
                                               const std::string& reason);
/// 0: it was in none.
[[nodiscard]] int last_round_of(const NodeRecord& node);
/// A node that heard how the run ended; null: none did, and the run may continue.
[[nodiscard]] const NodeRecord* with_verdict(const Nodes& nodes);
/// Whether the nodes of the last round have all ended, each with a record: the run has, too.
[[nodiscard]] bool all_have_ended(const Nodes& nodes, int last);
/// Why a round ended, in the words of the coordinator; empty: no node recorded it. How a node that
/// leaves ends says nothing of the run.
[[nodiscard]] std::string reason_after(const Nodes& nodes, int round);

}  // namespace ddprun::explain
