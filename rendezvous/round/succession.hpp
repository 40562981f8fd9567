// What a coordinator knows of those before it and after it, in runs in which the node that
// coordinates may be lost (docs/FAILOVER.md): options, the rounds that agents claim, and the
// successors that they are told. Plain data and pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rendezvous/round/roster.hpp"

namespace ddprun::round {

struct SuccessionOptions {
  bool exists = false;       // other nodes may coordinate the run
  bool at_endpoint = false;  // this coordinator listens where the run's endpoint is
  /// Set if this one comes after a coordinator that was lost: it decides nothing without a
  /// majority.
  struct Candidate {
    std::string ended_author;  // of the rounds whose coordinator has ended for sure; else empty
    std::string why;           // for people: what became of it
    std::string origin;        // of the run, as the node of this one was told; empty: it was not
  };
  std::optional<Candidate> candidate{};
};

/// What a coordinator, or a node that comes to it, knows of its run when it hears a `lead`.
struct KnownRun {
  const protocol::Terms& terms;
  const std::string& fingerprint;
  const std::string& origin;  // empty: not known
  bool has_round = false;
};

/// Whether who says `lead`, without a secret, may coordinate that run: it was told the origin, as
/// only members of rounds are; or it shows what a node that joins shows, where a node that joins
/// could do as much. In a run of a fixed number of nodes that has a round it could not.
[[nodiscard]] bool may_lead(const protocol::Lead& lead, const KnownRun& known);

/// What nodes of a run that knows no round yet have in common; "": their commands may differ.
[[nodiscard]] inline std::string command_key(const protocol::Terms& terms,
                                             const std::string& fingerprint) {
  return terms.commands_may_differ ? "" : fingerprint;
}

/// A candidate waits so long for a majority: who cannot get one is back at a coordinator that was
/// suspended before that one takes it for lost.
[[nodiscard]] inline Duration candidate_wait(const protocol::Terms& terms) {
  return Duration(terms.silence_max()) / 2;
}

/// The rest of a majority is waited for so long: this part of the silence limit.
inline constexpr int kMajorityGraceShare = 10;

/// Its members that are here, longest silent first.
[[nodiscard]] std::vector<Agent*> members_of(const ClaimedRound& claimed, const Roster& roster);

/// Whether no other coordinator can decide what follows this round. `ended`: members that have
/// ended for sure, of which only its author's may be counted.
[[nodiscard]] bool is_majority(const ClaimedRound& claimed, int ended);

[[nodiscard]] inline bool may_follow(const Agent& agent) {
  return agent.hello.standby_port != 0 && !agent.hello.runs_coordinator;
}

/// The nodes that follow the coordinator, as `receiver` reaches them.
[[nodiscard]] std::vector<protocol::Successor> successors_for(
    const Agent& receiver, const std::vector<Agent*>& members,
    const std::string& coordinator_address);

/// The address of the coordinator's machine at which the first remote member's connection arrived;
/// empty: there is none. Processes of that machine use it, too.
[[nodiscard]] std::string shared_address(const std::vector<Agent*>& members);

/// Where `receiver` reaches what `agent` listens for. `coordinator_address`: see shared_address().
[[nodiscard]] std::string address_for(const Agent& receiver, const Agent& agent,
                                      const std::string& coordinator_address);

}  // namespace ddprun::round
