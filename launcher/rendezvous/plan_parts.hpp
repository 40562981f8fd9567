// What several ways of plan have in common. Pure but for the facts it asks the machine. No
// thread rule.
#pragma once

#include <initializer_list>
#include <string>

#include "launcher/rendezvous/endpoint.hpp"
#include "launcher/rendezvous/nodes.hpp"
#include "launcher/rendezvous/plan.hpp"

namespace ddprun {

inline constexpr std::uint16_t kElasticPort = 29400;  // c10d, as in torchrun
inline constexpr std::uint16_t kStaticPort = 29500;

/// "--rdzv-id and --master-addr": those of the candidates that were given, or nothing.
[[nodiscard]] std::string given_ones(const Settings& settings,
                                     std::initializer_list<OptionId> candidates);

/// A note that `names` are not used, unless that is empty.
void note_unused(RendezvousPlan& plan, const std::string& names, const std::string& why);

/// Who serves the workers' store where a round chooses its address.
[[nodiscard]] StoreHost shared_store(const Machine& machine);

/// Run id and role as other nodes can be told them, restarts as they count them.
[[nodiscard]] Result<void> check_names_told(const RunId& run_id, const Settings& settings);

/// A plan through a coordinator: the given limits and --local-addr, and what they cost in notes.
[[nodiscard]] Result<RendezvousPlan> plan_over_link(const RendezvousInput& input,
                                                    const NodeRange& nodes, ConfUse use);

/// Refuses a name that means loopback here although other nodes are to come there. `shown` is the
/// option with its value. `localhost` and loopback literals are taken at their word.
[[nodiscard]] Result<void> refuse_loopback_name(const std::string& host, const Whereabouts& found,
                                                const NodeRange& nodes, const std::string& shown);

/// Where a coordinator at `host` listens: on the loopback address that is named beyond doubt, else
/// on every address.
[[nodiscard]] HostPlan host_plan(HostPlan::Need need, const std::string& host, std::uint16_t port);

}  // namespace ddprun
