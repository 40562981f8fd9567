#include "rendezvous/round/admission.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/format.hpp"
#include "base/printable.hpp"
#include "rendezvous/protocol/limits.hpp"
#include "rendezvous/round/reasons.hpp"
#include "rendezvous/round/rounds.hpp"

namespace ddprun::round {
namespace {

using protocol::Hello;
using protocol::RefusalCode;
using protocol::Refused;
using protocol::Terms;

// Deadlines are computed from it in nanoseconds, which last 292 years.
constexpr protocol::Milliseconds kSilenceMax = 100 * kDurationMax;

constexpr const char* kSameEverywhere = "; give all nodes the same";
constexpr const char* kAtCoordinator = " (the output of its coordinator says more)";
constexpr const char* kDifferentCommands =
    "; use a different --rdzv-id or --rdzv-endpoint for another job, or "
    "--allow-different-commands on all nodes of this one";

[[nodiscard]] std::string nodes_range(const Terms& terms) {
  return std::to_string(terms.nodes_min) + ":" + std::to_string(terms.nodes_max);
}

[[nodiscard]] std::string hang_timeout(const Terms& terms) {
  if (!terms.hang_timeout) return "no --hang-timeout";
  return "--hang-timeout " + duration_text(*terms.hang_timeout);
}

[[nodiscard]] Refused refused(RefusalCode code, std::string sentence) {
  return {code, std::move(sentence), protocol::Milliseconds(0)};
}

[[nodiscard]] std::string first_node(const RunTerms& run_terms) {
  const std::string from = run_terms.address.empty() ? "" : " at " + run_terms.address;
  return "run " + run_terms.run_id.value() + " (first node " + run_terms.host + from + ")";
}

/// Both commands from shortly before their first difference on, the first word before it.
[[nodiscard]] std::pair<std::string, std::string> where_they_differ(std::string_view left,
                                                                    std::string_view right) {
  constexpr std::size_t kShownMax = 120;
  constexpr std::size_t kBefore = 40;
  const auto at = std::mismatch(left.begin(), left.end(), right.begin(), right.end()).first;
  const auto equal = static_cast<std::size_t>(at - left.begin());
  const auto from = equal > kBefore ? left.rfind(' ', equal - kBefore / 2) : std::string_view::npos;
  const auto excerpt = [&](std::string_view command) {
    if (from == std::string_view::npos) return clean_utf8(command, kShownMax);
    const std::string program(command.substr(0, std::min(command.find(' '), kBefore)));
    return clean_utf8(program + " \xE2\x80\xA6" + std::string(command.substr(from)), kShownMax);
  };
  return {excerpt(left), excerpt(right)};
}

/// Whether both were given the name of the run: then its nodes are what their users say.
[[nodiscard]] bool has_one_name(const Hello& hello, const Terms& ours) {
  return hello.terms.is_named && ours.is_named;
}

[[nodiscard]] bool has_other_nodes(const Terms& theirs, const Terms& ours) {
  return theirs.nodes_min != ours.nodes_min || theirs.nodes_max != ours.nodes_max;
}

RunTerms run_terms_of(const RunId& run, const RunRecord::Agreed& agreed) {
  return {run, agreed.terms, agreed.fingerprint, "", agreed.host, agreed.address};
}

/// Of the run that the record is of, unless that is over or has had no round.
std::optional<RunTerms> standing_terms(const RunId& run, const RunRecord& record) {
  if (record.over || !record.agreed) return std::nullopt;
  return run_terms_of(run, *record.agreed);
}

/// Whether the agent was in this run or in one before it. A round is of it by its number, since a
/// later run has higher ones; or by its author, of which the verdict's coordinator may not have
/// known the last round. Who has heard of a round only, as a spare node, has no workers.
bool was_in(const RunRecord::Ended& ended, const protocol::Hello& hello) {
  if (!hello.claim) return hello.seen > Round(0) && hello.seen.value() <= ended.round;
  const protocol::RoundStamp& stamp = hello.claim->stamp;
  const std::int64_t term = term_of_author(stamp.author);
  return stamp.number.value() <= ended.round || (term > 0 && term <= ended.verdict.term);
}

}  // namespace

std::optional<Refused> refuse_hello(const Hello& hello) {
  if (hello.protocol != protocol::kProtocolVersion) {
    return refused(RefusalCode::kProtocol,
                   "this coordinator speaks protocol " +
                       std::to_string(protocol::kProtocolVersion) + ", " + hello.host + " speaks " +
                       std::to_string(hello.protocol) + "; use the same ddprun on all nodes");
  }
  const Terms& terms = hello.terms;
  if (terms.nodes_min > terms.nodes_max) {
    return refused(RefusalCode::kMalformed,
                   "--nnodes " + nodes_range(terms) + ": the minimum is above the maximum");
  }
  if (terms.keep_alive_interval.count() == 0 || terms.join_timeout.count() == 0) {
    return refused(RefusalCode::kMalformed,
                   "--rdzv-conf: keep_alive_interval and join_timeout must be above 0");
  }
  if (terms.keep_alive_interval > kSilenceMax / std::max(terms.keep_alive_max_attempt, 1)) {
    return refused(
        RefusalCode::kMalformed,
        "--rdzv-conf: keep_alive_interval times keep_alive_max_attempt is more than 100 years");
  }
  return std::nullopt;
}

std::optional<Refused> refuse_claim(const Hello& hello, const RunTerms& run_terms) {
  const int least = run_terms.terms.nodes_min;
  if (!hello.claim || hello.claim->group_size >= least) return std::nullopt;
  return refused(RefusalCode::kMalformed,
                 "round " + std::to_string(hello.claim->stamp.number.value()) + " claimed by " +
                     hello.host + " cannot be: it has fewer than " + std::to_string(least) +
                     " nodes, the least of this run");
}

std::optional<Refused> refuse_run(const Hello& hello, const RunId& run) {
  if (hello.run_id == run) return std::nullopt;
  return refused(RefusalCode::kWrongRun,
                 "this coordinator serves run " + run.value() + ", not run " +
                     hello.run_id.value() +
                     "; use the same --rdzv-id on all nodes, or another port");
}

// A node that knows all hosts of its run may ask at one where another run is coordinated.
std::optional<Refused> refuse_list(const Hello& hello, const std::string& ours) {
  const std::string& theirs = hello.terms.list_begins;
  const bool compared = !theirs.empty() && !ours.empty();
  if (!compared || theirs == ours) return std::nullopt;
  return refused(RefusalCode::kWrongRun, "the list of hosts of this run begins with " + ours +
                                             ", that of " + hello.host + " with " + theirs +
                                             kSameEverywhere);
}

bool has_other_command(const Hello& hello, const RunTerms& run_terms) {
  const bool compared = !run_terms.fingerprint.empty() && !run_terms.terms.commands_may_differ;
  return compared && hello.fingerprint != run_terms.fingerprint;
}

// One that does not say which it runs has to be believed nowhere else.
std::optional<Refused> refuse_command(const Hello& hello, const RunTerms& run_terms) {
  const std::string& program = run_terms.terms.program;
  const bool same_program = !program.empty() && hello.terms.program == program;
  const bool is_one_job = same_program || has_one_name(hello, run_terms.terms);
  if (is_one_job || !has_other_command(hello, run_terms)) return std::nullopt;
  if (run_terms.command.empty() && !hello.command.empty()) {  // of a coordinator before this one
    return refused(RefusalCode::kCommandDiffers,
                   first_node(run_terms) + " runs another command than " + hello.host +
                       ", which runs `" + where_they_differ(hello.command, "").first + "`" +
                       kDifferentCommands);
  }
  if (hello.command == run_terms.command) {
    return refused(RefusalCode::kCommandDiffers,
                   first_node(run_terms) + " runs another command than " + hello.host +
                       ", which begins alike: `" + where_they_differ(hello.command, "").first +
                       "`" + kDifferentCommands);
  }
  const auto [ours, theirs] = where_they_differ(run_terms.command, hello.command);
  return refused(RefusalCode::kCommandDiffers, first_node(run_terms) + " runs `" + ours + "`, " +
                                                   hello.host + " runs `" + theirs + "`" +
                                                   kDifferentCommands);
}

Refused as_told(const Refused& refused, const Hello& hello, const std::string& fingerprint,
                bool is_proven) {
  const bool is_told = is_proven || hello.fingerprint == fingerprint;
  if (is_told || refused.code == RefusalCode::kProtocol) return refused;
  Refused told = refused;
  if (refused.code == RefusalCode::kCommandDiffers) {
    told.sentence =
        hello.host + " runs another command than this run" + kAtCoordinator + kDifferentCommands;
  } else if (refused.code == RefusalCode::kWrongRun) {
    told.sentence = "this coordinator serves another run than that of " + hello.host +
                    kAtCoordinator +
                    "; use the same --rdzv-id and list of hosts on all nodes, or another port";
  } else {
    told.sentence = hello.host + " does not fit into this run" + kAtCoordinator + kSameEverywhere;
  }
  return told;
}

std::optional<Refused> refuse_terms(const Hello& hello, const RunTerms& run_terms) {
  const Terms& ours = run_terms.terms;
  const Terms& theirs = hello.terms;
  const std::string who = first_node(run_terms);
  if (auto other = refuse_list(hello, ours.list_begins)) return other;
  if (auto other = refuse_command(hello, run_terms)) return other;
  if (has_other_nodes(theirs, ours) && !has_one_name(hello, ours)) {
    return refused(RefusalCode::kTermsDiffer, who + " has --nnodes " + nodes_range(ours) + ", " +
                                                  hello.host + " has " + nodes_range(theirs) +
                                                  kSameEverywhere);
  }
  if (theirs.commands_may_differ != ours.commands_may_differ) {
    const auto has = [](const Terms& terms) {
      return terms.commands_may_differ ? " has" : " lacks";
    };
    return refused(RefusalCode::kTermsDiffer, who + has(ours) + " --allow-different-commands, " +
                                                  hello.host + has(theirs) + " it" +
                                                  kSameEverywhere);
  }
  if (theirs.hang_timeout != ours.hang_timeout) {
    return refused(RefusalCode::kTermsDiffer, who + " has " + hang_timeout(ours) + ", " +
                                                  hello.host + " has " + hang_timeout(theirs) +
                                                  kSameEverywhere);
  }
  if (hello.node_rank && *hello.node_rank >= ours.nodes_max) {
    return refused(RefusalCode::kNodeRankTooHigh,
                   "--node-rank " + std::to_string(*hello.node_rank) + " of " + hello.host +
                       " is not below the maximum of " + std::to_string(ours.nodes_max) + " nodes");
  }
  return std::nullopt;
}

std::vector<Difference> differences(const Hello& hello, const RunTerms& run_terms) {
  const Terms& ours = run_terms.terms;
  const Terms& theirs = hello.terms;
  const std::string holds = ", the run has that of its first node " + run_terms.host + ": ";
  std::vector<Difference> all;
  if (has_other_command(hello, run_terms)) {
    const bool same = !ours.program.empty() && theirs.program == ours.program;
    const std::string what =
        hello.host + (same ? " has other arguments than " : " runs another program than ");
    const auto [here, there] = where_they_differ(run_terms.command, hello.command);
    all.push_back(
        {what + run_terms.host, what + run_terms.host + ": `" + there + "`, not `" + here + "`"});
  }
  if (theirs.max_restarts != ours.max_restarts) {
    all.push_back({hello.host + " has --max-restarts " + std::to_string(theirs.max_restarts) +
                       holds + std::to_string(ours.max_restarts),
                   ""});
  }
  if (has_other_nodes(theirs, ours)) {
    all.push_back(
        {hello.host + " has --nnodes " + nodes_range(theirs) + holds + nodes_range(ours), ""});
  }
  return all;
}

std::optional<Refused> refuse_round(const Hello& hello, Round known, int jump_max) {
  const Round heard_of = hello.heard_of();
  if (heard_of.value() - known.value() <= jump_max) return std::nullopt;
  return refused(RefusalCode::kMalformed,
                 "round " + std::to_string(heard_of.value()) + " claimed by " + hello.host +
                     " cannot be: the run has reached round " + std::to_string(known.value()));
}

Refused refuse_node_rank(const Hello& hello, const std::string& holder_host,
                         protocol::Milliseconds retry_after) {
  return {RefusalCode::kNodeRankTaken,
          "--node-rank " + std::to_string(hello.node_rank.value_or(0)) + " of " + hello.host +
              " is taken by " + holder_host + "; give every node its own",
          retry_after};
}

RunRecord::Agreed agreed_on(const RunTerms& run_terms) {
  RunRecord::Agreed agreed{run_terms.terms, run_terms.fingerprint, run_terms.host,
                           run_terms.address};
  agreed.terms.list_begins.clear();
  return agreed;
}

std::vector<RunRecord::Ended> ended_runs(const RunRecord& record) {
  std::vector<RunRecord::Ended> ended = record.before;
  if (record.over) ended.push_back({record.round, *record.over});
  if (ended.size() > kEndedRunsMax) ended.erase(ended.begin());
  return ended;
}

const RunRecord::Verdict* missed_verdict(const std::vector<RunRecord::Ended>& ended,
                                         const protocol::Hello& hello) {
  const auto run = std::find_if(ended.begin(), ended.end(),
                                [&hello](const auto& one) { return was_in(one, hello); });
  return run == ended.end() ? nullptr : &run->verdict;
}

std::optional<protocol::Refused> refuse_record(const protocol::Hello& hello,
                                               const RunRecord& record) {
  const auto run_terms = standing_terms(hello.run_id, record);
  return run_terms ? refuse_terms(hello, *run_terms) : std::nullopt;
}

Agreement::Agreement(RunId run, std::optional<RunRecord> record)
    : run_(std::move(run)), record_(std::move(record)) {
  if (record_) ended_ = ended_runs(*record_);
}

RunTerms Agreement::first_for(const Hello& hello) const {
  RunTerms own{hello.run_id, hello.terms, hello.fingerprint, hello.command, hello.host, ""};
  if (!continues_record()) return own;
  return standing_terms(run_, *record_).value_or(std::move(own));
}

RestartCount Agreement::restarts_before() const {
  return RestartCount(continues_record() ? record_->restarts : 0);
}

void Agreement::take(const Hello& hello, const Peer& peer) {
  RunTerms agreed = first_for(hello);
  if (hello.heard_of() == Round(0)) agreed.terms = hello.terms;
  if (agreed.host == hello.host) agreed.address = peer.address;
  if (hello.fingerprint == agreed.fingerprint) agreed.command = hello.command;
  agreed_ = std::move(agreed);
}

void Agreement::begin_new_run(const Hello& hello) {
  const bool is_over = record_ && record_->over && record_->agreed;
  is_other_command_ = is_over && has_other_command(hello, run_terms_of(run_, *record_->agreed));
  versions_.clear();
}

std::string Agreement::compare_version(const Hello& hello) {
  const bool known =
      std::find(versions_.begin(), versions_.end(), hello.version) != versions_.end();
  if (known || versions_.size() >= kVersionsMax) return "";
  versions_.push_back(hello.version);
  if (versions_.size() == 1) return "";
  return reasons::another_version(hello.host, hello.version, versions_.front());
}

}  // namespace ddprun::round
