// Who may take part in a run, and with which sentence the others are sent away. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rendezvous/protocol/messages.hpp"
#include "rendezvous/protocol/run_record.hpp"
#include "rendezvous/round/event.hpp"

namespace ddprun::round {

/// How far agents may lift the round number of a run in all, beyond the rounds that its coordinator
/// knows of. Others can have started rounds meanwhile, at most a few per second.
inline constexpr int kRoundJumpMax = 1 << 20;

/// What the first agent of a run asks for; all agents after it must agree.
struct RunTerms {
  RunId run_id;
  protocol::Terms terms;
  std::string fingerprint;
  std::string command;
  std::string host;     // of that agent
  std::string address;  // from which it came
};

/// What is wrong with the hello, whatever the run: protocol number, contradictory terms.
[[nodiscard]] std::optional<protocol::Refused> refuse_hello(const protocol::Hello& hello);

/// A claim of a round with fewer nodes than the run allows.
[[nodiscard]] std::optional<protocol::Refused> refuse_claim(const protocol::Hello& hello,
                                                            const RunTerms& run_terms);

/// A hello that asks another run than the one served here.
[[nodiscard]] std::optional<protocol::Refused> refuse_run(const protocol::Hello& hello,
                                                          const RunId& run);

/// A hello with a list of hosts that begins with another one than `ours`, "host:port" (empty: this
/// run has no such list). Part of refuse_terms().
[[nodiscard]] std::optional<protocol::Refused> refuse_list(const protocol::Hello& hello,
                                                           const std::string& ours);

/// What does not agree with the rest of the run. The times in the terms may differ: the first
/// agent's hold.
[[nodiscard]] std::optional<protocol::Refused> refuse_terms(const protocol::Hello& hello,
                                                            const RunTerms& run_terms);

/// Whether the node runs another command than the run, arguments included, if they are compared.
[[nodiscard]] bool has_other_command(const protocol::Hello& hello, const RunTerms& run_terms);

/// What differs in a node that takes part all the same, as under torchrun: arguments of its own,
/// another limit of restarts; where the run has a name, program and number of nodes too. The run's
/// hold. Commands may have secrets: `in_log` ("": the same) is for the coordinator's own log.
struct Difference {
  std::string text;
  std::string in_log;
};
[[nodiscard]] std::vector<Difference> differences(const protocol::Hello& hello,
                                                  const RunTerms& run_terms);

/// Another program than the run's, unless the run has a name that was given, or its nodes may have
/// different commands: two jobs at one endpoint must not become one. Part of refuse_terms().
[[nodiscard]] std::optional<protocol::Refused> refuse_command(const protocol::Hello& hello,
                                                              const RunTerms& run_terms);

/// What an agent is told of its refusal: who has neither a secret nor the command of the run may be
/// a stranger, and learns nothing of the run. The coordinator's own log has the whole sentence.
/// `fingerprint`: of the run's command.
[[nodiscard]] protocol::Refused as_told(const protocol::Refused& refused,
                                        const protocol::Hello& hello,
                                        const std::string& fingerprint, bool is_proven);

/// For an agent that has heard of a round which the run cannot have reached. `known`: the highest
/// that the coordinator, or the agents that it believes, know.
[[nodiscard]] std::optional<protocol::Refused> refuse_round(const protocol::Hello& hello,
                                                            Round known, int jump_max);

/// For a node rank that an agent on `holder_host` has; one retry, in case that agent is dying
/// unseen.
[[nodiscard]] protocol::Refused refuse_node_rank(const protocol::Hello& hello,
                                                 const std::string& holder_host,
                                                 protocol::Milliseconds retry_after);

// What a run leaves for the coordinators after it (rendezvous/protocol/run_record.hpp), and which
// agents that concerns. docs/internals/PROTOCOL.md has the rules.

[[nodiscard]] RunRecord::Agreed agreed_on(const RunTerms& run_terms);
/// Runs that have ended, oldest first: those before the one of the record, and that one, if so.
[[nodiscard]] std::vector<RunRecord::Ended> ended_runs(const RunRecord& record);
/// How the run ended that this agent was in; null: it is not known to have ended, or this agent
/// was in none. Points into `ended`.
[[nodiscard]] const RunRecord::Verdict* missed_verdict(const std::vector<RunRecord::Ended>& ended,
                                                       const protocol::Hello& hello);
/// Whether this agent's terms differ from those of the run that lives: then its process may not
/// coordinate it.
[[nodiscard]] std::optional<protocol::Refused> refuse_record(const protocol::Hello& hello,
                                                             const RunRecord& record);

/// Versions of ddprun that differ and are noted, each once.
inline constexpr std::size_t kVersionsMax = 8;

/// Agreement: what the nodes of a run agree on, terms and command: those of its first agent, or of
/// the run that the coordinator before this one left in its record. Pure, owned by Run.
class Agreement {
 public:
  /// `record`: set if other coordinators follow this one; what the one before it left.
  Agreement(RunId run, std::optional<RunRecord> record);

  /// Whether an agent has brought them.
  [[nodiscard]] bool is_known() const { return agreed_.has_value(); }
  /// Only then.
  [[nodiscard]] const RunTerms& agreed() const { return *agreed_; }
  /// What this hello has to agree with, as the first one of a run.
  [[nodiscard]] RunTerms first_for(const protocol::Hello& hello) const;
  [[nodiscard]] const std::optional<RunRecord>& record() const { return record_; }
  /// How runs of this name ended that this coordinator did not see to their end.
  [[nodiscard]] const std::vector<RunRecord::Ended>& ended() const { return ended_; }

  /// The run of the coordinator before this one continues: it has no verdict, and no round here
  /// yet.
  [[nodiscard]] bool continues_record() const { return record_ && !record_->over && !started_; }
  /// What that one had used of its budget.
  [[nodiscard]] RestartCount restarts_before() const;
  void round_started() { started_ = true; }

  /// The first agent of the run. If all its nodes were lost, and are started again, their times are
  /// new.
  void take(const protocol::Hello& hello, const Peer& peer);
  void begin_new_run(const protocol::Hello& hello);
  /// Than that of the success that the record is of: its agents are not late for that.
  [[nodiscard]] bool is_other_command() const { return is_other_command_; }
  /// What is new about its version, for people; empty: nothing. A thousand nodes of one version are
  /// one line.
  [[nodiscard]] std::string compare_version(const protocol::Hello& hello);

 private:
  RunId run_;
  std::optional<RunRecord> record_;
  std::vector<RunRecord::Ended> ended_;
  std::optional<RunTerms> agreed_;
  bool started_ = false;  // a round, here
  bool is_other_command_ = false;
  std::vector<std::string> versions_;  // that its agents have told, the first agent's first
};

}  // namespace ddprun::round
