// What a run leaves for the coordinators after it (rendezvous/protocol/run_record.hpp), and who is
// concerned by it. docs/internals/PROTOCOL.md has the rules. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rendezvous/protocol/run_record.hpp"
#include "rendezvous/round/admission.hpp"

namespace ddprun::round {

/// The name of a coordinator process as the author of rounds: with the term in which it was
/// elected, if it was (above 0).
[[nodiscard]] std::string author_name(std::int64_t term, const std::string& unique);
/// With a name that the authors before and after it have, too ("UNIQUE@LINEAGE"): a member of a
/// round of one of them knows it.
[[nodiscard]] std::string author_of_lineage(const std::string& lineage, const std::string& unique);
/// Of an author; empty: it has none.
[[nodiscard]] std::string_view lineage_of(const std::string& author);
/// 0: it was not elected.
[[nodiscard]] std::int64_t term_of_author(const std::string& author);

[[nodiscard]] RunRecord::Agreed agreed_on(const RunTerms& run_terms);
/// Of the run that the record is of, unless that is over or has had no round.
[[nodiscard]] std::optional<RunTerms> standing_terms(const RunId& run, const RunRecord& record);

/// Runs that have ended, oldest first: those before the one of the record, and that one, if so.
[[nodiscard]] std::vector<RunRecord::Ended> ended_runs(const RunRecord& record);
/// How the run ended that this agent was in; null: it is not known to have ended, or this agent
/// was in none. Points into `ended`.
[[nodiscard]] const RunRecord::Verdict* missed_verdict(const std::vector<RunRecord::Ended>& ended,
                                                       const protocol::Hello& hello);
/// Whether the record is of a success of another command than this agent's: it is not late for it.
[[nodiscard]] bool is_of_other_command(const RunRecord& record, const protocol::Hello& hello);
/// Whether this agent's terms differ from those of the run that lives: then its process may not
/// coordinate it.
[[nodiscard]] std::optional<protocol::Refused> refuse_record(const protocol::Hello& hello,
                                                             const RunRecord& record);

}  // namespace ddprun::round
