// Agreement: what the nodes of a run agree on, terms and command: those of its first agent, or of
// the run that the coordinator before this one left in its record. Pure, owned by Run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rendezvous/protocol/run_record.hpp"
#include "rendezvous/round/admission.hpp"
#include "rendezvous/round/event.hpp"

namespace ddprun::round {

/// Versions of ddprun that differ and are noted, each once.
inline constexpr std::size_t kVersionsMax = 8;

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
  /// Than that of the success before.
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
