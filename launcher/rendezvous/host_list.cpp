#include <algorithm>
#include <map>
#include <utility>

#include "base/address.hpp"
#include "base/assert.hpp"
#include "base/limits.hpp"
#include "launcher/options/values.hpp"
#include "launcher/rendezvous/plan.hpp"

namespace ddprun {
namespace {

// Number of hosts that one sentence names; the others are counted.
constexpr std::size_t kHostsNamedMax = 8;

using Hosts = std::vector<Endpoint>;
using Positions = std::vector<std::size_t>;

/// "gpu-01 (node 0) and gpu-02 (node 1, unknown here)": its name does not resolve. Beyond
/// kHostsNamedMax the others are counted.
std::string listed_hosts(const Hosts& hosts, const Positions& positions,
                         const Positions& unknown = {}) {
  std::string text;
  const auto is_unknown = [&unknown](std::size_t position) {
    return std::binary_search(unknown.begin(), unknown.end(), position);
  };
  const std::size_t shown = std::min(positions.size(), kHostsNamedMax);
  for (std::size_t i = 0; i < shown; ++i) {
    const bool last = i + 1 == positions.size() && i > 0;
    text += (i == 0 ? ""
             : last ? " and "
                    : ", ") +
            text_of(hosts[positions[i]]) + " (node " + std::to_string(positions[i]) +
            (is_unknown(positions[i]) ? ", unknown here)" : ")");
  }
  const std::size_t left = positions.size() - shown;
  if (left == 0) return text;
  const auto unresolved = std::count_if(positions.end() - static_cast<std::ptrdiff_t>(left),
                                        positions.end(), is_unknown);
  text += " and " + std::to_string(left) + " more";
  if (unresolved == 0) return text;
  return text + " (" + std::to_string(unresolved) + " of them unknown here)";
}

/// "gpu-01", whose address need not be looked up if it is the machine's own name.
bool is_own_name(const Endpoint& host, const std::string& own_name) {
  return !is_address_literal(host.host) && same_host_name(host.host, own_name);
}

struct FoundHosts {
  Positions own;
  Positions unknown;
};

/// The entries that are this machine: by its address, or by the machine's own name, which avoids
/// the lookup of all other names.
FoundHosts find_hosts_here(const Hosts& hosts, const Machine& machine) {
  using Place = Whereabouts::Place;
  const std::string own_name = machine.host_name();
  const bool named = std::any_of(hosts.begin(), hosts.end(), [&own_name](const Endpoint& host) {
    return is_own_name(host, own_name);
  });
  FoundHosts found;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const std::string& host = hosts[i].host;
    const bool cheap =
        is_address_literal(host) || named_loopback(host) || same_host_name(host, own_name);
    if (named && !cheap) continue;
    const Place place = is_own_name(hosts[i], own_name) ? Place::kHere : machine.locate(host).place;
    if (place == Place::kHere) found.own.push_back(i);
    if (place == Place::kUnknown) found.unknown.push_back(i);
  }
  return found;
}

Error not_in_list(const Hosts& hosts, const FoundHosts& found, const Machine& machine,
                  const std::string& source) {
  Positions all(hosts.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  return usage(source + ": this machine (" + machine.host_name() + ") is none of " +
               listed_hosts(hosts, all, found.unknown) +
               "; add it to the list on every node, or pass its --node-rank");
}

/// The one entry that is this machine; none and several are refused, named.
Result<std::size_t> find_own_position(const Hosts& hosts, const Machine& machine,
                                      const std::string& source) {
  const FoundHosts found = find_hosts_here(hosts, machine);
  if (found.own.size() == 1) return found.own.front();
  if (found.own.empty()) return not_in_list(hosts, found, machine, source);
  return usage(source + ": this machine (" + machine.host_name() + ") is " +
               listed_hosts(hosts, found.own) + "; pass --node-rank to choose one");
}

/// Entries between commas, each HOST, HOST:PORT, V6 or [V6]:PORT. A host that is listed twice with
/// one port is refused.
Result<Hosts> parse_hosts(const Setting<std::string>& option) {
  Hosts hosts;
  std::map<std::pair<std::string, std::uint16_t>, std::size_t> seen;
  for (const std::string& part : split_list(option.value)) {
    const std::string entry(trimmed(part));
    if (entry.empty()) return usage(option.quoted() + " has an empty entry");
    if (entry.find_first_of(" \t\r\n") != std::string::npos) {
      return usage(option.name +
                   ": commas separate the hosts, not blanks or newlines (scontrol "
                   "show hostnames | paste -sd,)");
    }
    auto host = parse_endpoint(entry, option.name);
    if (!host) return host.error();
    const auto key = std::pair(lower(host->host), host->port.value_or(kC10dPort));
    const auto [first, is_new] = seen.emplace(key, hosts.size());
    if (!is_new) {
      return usage(option.name + " names " + entry + " twice (nodes " +
                   std::to_string(first->second) + " and " + std::to_string(hosts.size()) +
                   "): several nodes on one machine need different ports, HOST:PORT");
    }
    hosts.push_back(*host);
    if (hosts.size() > static_cast<std::size_t>(kNodesMax)) {
      return usage(option.name + " names more than " + std::to_string(kNodesMax) + " nodes");
    }
  }
  return hosts;
}

/// --nnodes beside the list: its MAX is the number of hosts, its MIN may be lower.
Result<NodeRange> nodes_of_list(const RendezvousRequest& asked, const Hosts& hosts) {
  const int count = static_cast<int>(hosts.size());
  if (!asked.nodes.given) return NodeRange{count, count};
  if (asked.nodes.value.max == count) return asked.nodes.value;
  return usage(asked.hosts.name + " names " + text_of(NodeRange{count, count}) + ", but " +
               asked.nodes.shown() + " differs: drop one of the two");
}

Result<void> refuse_contradictions(const RendezvousRequest& asked) {
  const std::string beside =
      given_names({&asked.standalone, &asked.endpoint, &asked.master_addr, &asked.master_port});
  if (!beside.empty()) {
    return usage(asked.hosts.name + " gives the address of the rendezvous, and so does " + beside +
                 ": drop one of the two");
  }
  if (asked.backend.given && asked.backend.value != Backend::kC10d) {
    return usage(asked.hosts.name + " goes with --rdzv-backend=c10d, not with " +
                 asked.backend.shown());
  }
  return {};
}

Result<std::size_t> own_position(const RendezvousRequest& asked, const Hosts& hosts,
                                 const Machine& machine) {
  const Setting<std::int64_t>& rank = asked.node_rank;
  if (!rank.given) return find_own_position(hosts, machine, asked.hosts.name);
  if (rank.value >= 0 && rank.value < static_cast<std::int64_t>(hosts.size())) {
    return static_cast<std::size_t>(rank.value);
  }
  return no_such_rank(rank, "the nodes of " + asked.hosts.name, static_cast<int>(hosts.size()));
}

}  // namespace

Result<RendezvousPlan> plan_hosts_option(const Request& request, const Machine& machine) {
  const RendezvousRequest& asked = request.rendezvous;
  auto allowed = refuse_contradictions(asked);
  if (!allowed) return allowed.error();
  auto hosts = parse_hosts(asked.hosts);
  if (!hosts) return hosts.error();
  auto nodes = nodes_of_list(asked, *hosts);
  if (!nodes) return nodes.error();
  auto own = own_position(asked, *hosts, machine);
  if (!own) return own.error();
  const HostList list{std::move(*hosts), *own, *nodes, asked.hosts.name};
  auto plan = plan_host_list(list, request, machine);
  if (plan && plan->rendezvous) {
    const CoordinatorAddress& first = plan->rendezvous->hosts.front();
    plan->rendezvous->list_begins = host_and_port(first.host, first.port);
  }
  return plan;
}

Result<RendezvousPlan> plan_host_list(const HostList& list, const Request& request,
                                      const Machine& machine) {
  DDPRUN_ASSERT(list.own < list.hosts.size());
  DDPRUN_ASSERT(list.nodes.max == static_cast<int>(list.hosts.size()));
  if (list.nodes.max == 1) return plan_single_node(request, machine);
  const Endpoint& root = list.hosts.front();
  SeveralNodes several;
  several.nodes = list.nodes;
  several.coordinator = {root.host, root.port.value_or(kC10dPort)};
  for (const Endpoint& one : list.hosts) {
    several.hosts.push_back({one.host, one.port.value_or(several.coordinator.port)});
  }
  several.node_rank = static_cast<int>(list.own);
  several.scheduler_index = several.node_rank;
  if (list.own == 0) several.runs_coordinator = CoordinatorPlan::Need::kMust;
  several.own_by_loopback = true;  // even if its name resolves to 127.0.1.1
  if (several.coordinator.port == 0) return port_of_kernel(list.source + ": " + text_of(root));
  auto plan = plan_several_nodes(several, request, machine);
  if (!plan) return plan;
  for (const Endpoint& host : list.hosts) plan->hosts.push_back(host.host);
  const Setting<RendezvousConf>& conf = request.rendezvous.conf;
  const bool first = list.own == 0;
  const bool against = conf.value.is_host.value_or(first) != first;
  note_unused(*plan, against ? conf.name + " is_host" : "",
              "the first of " + list.source + " runs the coordinator");
  return plan;
}

}  // namespace ddprun
