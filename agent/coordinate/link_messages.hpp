// link_messages: between what the link to the coordinator says (rendezvous/protocol) and what the
// agent works with. Pure, no thread rule.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/config/launch_config.hpp"
#include "agent/config/plan.hpp"
#include "agent/output/wait_line.hpp"
#include "rendezvous/client/membership.hpp"
#include "rendezvous/client/membership/events.hpp"

namespace ddprun {

/// Who this agent is.
struct AgentIdentity {
  AgentId id;  // random, one per process
  std::string hostname;
  enum class Coordinator { kHere, kElsewhere };
  Coordinator coordinator = Coordinator::kElsewhere;
  std::vector<std::string> addresses{};  // of its interfaces; empty: unknown
};
/// Without `config.rendezvous`: of a single node, whose link does not fail and needs no heartbeats.
[[nodiscard]] client::MembershipOptions membership_options(const LaunchConfig& config,
                                                           const AgentIdentity& identity);
/// What nodes of a run have in common before its first round; "": their commands may differ.
[[nodiscard]] std::string command_key(const WorkerConfig& workers);
/// "gpu-01:29400", "[fd00::1]:29400".
[[nodiscard]] std::string to_text(const CoordinatorAddress& address);
/// Where it is, or what says so: "10.0.0.1:29400", "etcd h1:2379,h2:2379".
[[nodiscard]] std::string coordinator_text(const RendezvousConfig& rendezvous);

/// With MasterChoice::kFixed the master is the configuration's, else the round's; a single node has
/// the configuration's address and the round's port.
[[nodiscard]] RoundFacts facts_of(const protocol::StartRound& round, const LaunchConfig& config);

/// What a node without a round waits for, from the events of its link. Time is an argument.
class RendezvousWait {
 public:
  RendezvousWait(const RendezvousConfig& config, TimePoint start)
      : config_(config), start_(start) {}

  /// The coordinator, nodes, or nothing. `joined`: a coordinator has answered before.
  [[nodiscard]] const std::optional<Wait>& after(const client::Event& event, bool joined,
                                                 TimePoint now);
  /// A round starts, or the run is over: the next wait begins from zero.
  void end();

 private:
  void wait_for_coordinator(bool joined, TimePoint now);
  void wait_for_nodes(const protocol::Waiting& waiting, TimePoint now);

  const RendezvousConfig& config_;
  TimePoint start_;
  std::optional<Wait> wait_{};
  std::optional<TimePoint> nodes_since_{};
};

}  // namespace ddprun
