// --hosts: the same list on every node, in which each finds its own place. Pure but for the facts
// it asks the machine. No thread rule.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "launcher/machine.hpp"
#include "launcher/rendezvous/endpoint.hpp"
#include "launcher/rendezvous/plan.hpp"

namespace ddprun {

/// Entries between commas, each HOST, HOST:PORT, V6 or [V6]:PORT. `source` is what sentences call
/// the list. Twice the same host with the same port is refused.
[[nodiscard]] Result<std::vector<Endpoint>> parse_hosts(const std::string& text,
                                                        const std::string& source);

/// The one entry that is this machine: by its address, or by the machine's own name, which spares
/// the look-up of all other names. None and several are refused, named.
[[nodiscard]] Result<std::size_t> find_own_place(const std::vector<Endpoint>& hosts,
                                                 const Machine& machine, const std::string& source);

/// A plan by --hosts. --node-rank says the own place where addresses cannot.
[[nodiscard]] Result<RendezvousPlan> plan_hosts_option(const RendezvousInput& input);

}  // namespace ddprun
