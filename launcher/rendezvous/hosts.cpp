#include "launcher/rendezvous/hosts.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "launcher/limits.hpp"
#include "launcher/options/numbers.hpp"
#include "launcher/rendezvous/host_list.hpp"
#include "launcher/rendezvous/plan_parts.hpp"
#include "launcher/usage.hpp"

namespace ddprun {
namespace {

using Id = OptionId;
using Place = Whereabouts::Place;
using Hosts = std::vector<Endpoint>;

/// "gpu-01 (node 0) and 10.0.0.1 (node 1)"; beyond kHostsNamedMax the others are counted.
std::string listed(const Hosts& hosts, const std::vector<std::size_t>& places) {
  std::string text;
  const std::size_t shown = std::min(places.size(), kHostsNamedMax);
  for (std::size_t i = 0; i < shown; ++i) {
    const bool last = i + 1 == places.size() && i > 0;
    text += (i == 0 ? ""
             : last ? " and "
                    : ", ") +
            text_of(hosts[places[i]]) + " (node " + std::to_string(places[i]) + ")";
  }
  return shown == places.size() ? text
                                : text + " and " + std::to_string(places.size() - shown) + " more";
}

/// What a look at one entry says.
Place place_of(const Endpoint& host, const Machine& machine) {
  if (!is_address_literal(host.host) && same_host_name(host.host, machine.host_name())) {
    return Place::kHere;
  }
  return machine.locate(host.host).place;
}

struct Found {
  std::vector<std::size_t> own;
  std::vector<std::size_t> unknown;
};

Found look_at(const Hosts& hosts, const Machine& machine) {
  const std::string own_name = machine.host_name();
  const bool named = std::any_of(hosts.begin(), hosts.end(), [&own_name](const Endpoint& one) {
    return !is_address_literal(one.host) && same_host_name(one.host, own_name);
  });
  Found found;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const std::string& host = hosts[i].host;
    const bool cheap =
        is_address_literal(host) || named_loopback(host) || same_host_name(host, own_name);
    if (named && !cheap) continue;
    const Place place = place_of(hosts[i], machine);
    if (place == Place::kHere) found.own.push_back(i);
    if (place == Place::kUnknown) found.unknown.push_back(i);
  }
  return found;
}

Error not_in_list(const Hosts& hosts, const Found& found, const Machine& machine,
                  const std::string& source) {
  std::vector<std::size_t> all(hosts.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  std::string sentence =
      source + ": this machine (" + machine.host_name() + ") is none of " + listed(hosts, all);
  if (!found.unknown.empty()) {
    sentence += "; not known here: " + listed(hosts, found.unknown);
  }
  return usage(sentence +
               "; add it to the list on every node, or say with --node-rank which of them it is");
}

/// --nnodes beside the list: its MAX is the number of hosts, its MIN may be lower.
Result<NodeRange> nodes_of(const Settings& settings, const Hosts& hosts) {
  const int count = static_cast<int>(hosts.size());
  if (!settings.given(Id::kNnodes)) return NodeRange{count, count};
  auto nodes = parse_nodes(settings);
  if (!nodes || nodes->max == count) return nodes;
  return usage(settings.named(Id::kHosts) + " names " + text_of(NodeRange{count, count}) +
               ", but " + settings.shown(Id::kNnodes) + " is another number: drop one of the two");
}

Result<void> refuse_contradictions(const Settings& settings) {
  const std::string name = settings.named(Id::kHosts);
  const std::string beside =
      given_ones(settings, {Id::kStandalone, Id::kRdzvEndpoint, Id::kMasterAddr, Id::kMasterPort});
  if (!beside.empty()) {
    return usage(name + " says where the nodes meet, and so does " + beside +
                 ": drop one of the two");
  }
  if (settings.given(Id::kRdzvBackend) && settings.text(Id::kRdzvBackend) != "c10d") {
    return usage(name + " goes with --rdzv-backend=c10d, not with " +
                 settings.shown(Id::kRdzvBackend));
  }
  return {};
}

Result<std::size_t> own_place(const RendezvousInput& input, const Hosts& hosts) {
  const Settings& settings = input.settings;
  if (!settings.given(Id::kNodeRank)) {
    return find_own_place(hosts, input.machine, settings.named(Id::kHosts));
  }
  const std::int64_t rank = settings.integer(Id::kNodeRank);
  if (rank >= 0 && rank < static_cast<std::int64_t>(hosts.size())) {
    return static_cast<std::size_t>(rank);
  }
  return usage(settings.shown(Id::kNodeRank) + ": the places in " + settings.named(Id::kHosts) +
               " are 0 to " + std::to_string(hosts.size() - 1));
}

}  // namespace

Result<Hosts> parse_hosts(const std::string& text, const std::string& source) {
  Hosts hosts;
  std::map<std::pair<std::string, std::uint16_t>, std::size_t> seen;
  std::string_view rest = text;
  while (true) {
    const auto comma = rest.find(',');
    const std::string entry(trimmed(rest.substr(0, comma)));
    if (entry.empty()) return usage(source + "='" + text + "' has an empty entry");
    auto host = parse_endpoint(entry, source);
    if (!host) return host.error();
    const auto key = std::pair(lower(host->host), host->port.value_or(kElasticPort));
    const auto [first, is_new] = seen.emplace(key, hosts.size());
    if (!is_new) {
      return usage(source + " names " + entry + " twice (nodes " + std::to_string(first->second) +
                   " and " + std::to_string(hosts.size()) +
                   "): several nodes on one machine need different ports, HOST:PORT");
    }
    hosts.push_back(*host);
    if (hosts.size() > static_cast<std::size_t>(kNodesMax)) {
      return usage(source + " names more than " + std::to_string(kNodesMax) + " nodes");
    }
    if (comma == std::string_view::npos) return hosts;
    rest.remove_prefix(comma + 1);
  }
}

Result<std::size_t> find_own_place(const Hosts& hosts, const Machine& machine,
                                   const std::string& source) {
  const Found found = look_at(hosts, machine);
  if (found.own.size() == 1) return found.own.front();
  if (found.own.empty()) return not_in_list(hosts, found, machine, source);
  return usage(source + ": this machine (" + machine.host_name() + ") is " +
               listed(hosts, found.own) + "; say with --node-rank which of them this node is");
}

Result<RendezvousPlan> plan_hosts_option(const RendezvousInput& input) {
  const Settings& settings = input.settings;
  const std::string source = settings.named(Id::kHosts);
  auto allowed = refuse_contradictions(settings);
  if (!allowed) return allowed.error();
  auto hosts = parse_hosts(settings.text(Id::kHosts), source);
  if (!hosts) return hosts.error();
  auto nodes = nodes_of(settings, *hosts);
  if (!nodes) return nodes.error();
  auto own = own_place(input, *hosts);
  if (!own) return own.error();
  if (*own > 0) {
    const std::string& root = hosts->front().host;
    auto reachable = refuse_loopback_name(root, input.machine.locate(root), *nodes, source);
    if (!reachable) return reachable.error();
  }
  HostList list{std::move(*hosts), *own, *nodes, source};
  return plan_host_list(list, RunId(settings.text(Id::kRdzvId)), input);
}

}  // namespace ddprun
