#include "launcher/rendezvous/plan.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "base/address.hpp"
#include "base/assert.hpp"
#include "base/limits.hpp"
#include "base/printable.hpp"
#include "launcher/machine/machine.hpp"
#include "launcher/options/values.hpp"

namespace ddprun {

namespace {

/// torchrun's rule since 2.12: a plain run on one node is standalone.
bool standalone_is_implied(const RendezvousRequest& asked) {
  return asked.nodes.value.max == 1 && asked.backend.value == Backend::kStatic &&
         !asked.endpoint.value && !asked.master_port.given;
}

Result<RendezvousPlan> choose_plan(const Request& request, const Machine& machine) {
  const RendezvousRequest& asked = request.rendezvous;
  if (!asked.hosts.value.empty()) return plan_hosts_option(request, machine);
  if (asked.scheduler_hosts) return plan_host_list(*asked.scheduler_hosts, request, machine);
  if (asked.standalone.value && asked.nodes.value.max > 1) {
    return usage(asked.standalone.name + " is one node, but " + asked.nodes.shown() +
                 " asks for more: drop one of the two");
  }
  if (asked.standalone.value || standalone_is_implied(asked)) {
    return plan_standalone(request, machine);
  }
  if (asked.backend.value == Backend::kC10d) return plan_c10d(request, machine);
  if (asked.backend.value == Backend::kEtcd) return plan_etcd(request, machine);
  return plan_static(request, machine);
}

/// All three, or none.
Result<std::optional<Certificates>> certificates_of(const RendezvousRequest& asked) {
  const Setting<std::string>* const files[] = {&asked.tls_cert, &asked.tls_key, &asked.tls_ca};
  const auto* given = std::find_if(std::begin(files), std::end(files),
                                   [](const auto* file) { return file->given; });
  if (given == std::end(files)) return std::optional<Certificates>();
  for (const auto* file : files) {
    if (!file->given) {
      return usage((*given)->shown() +
                   ": --rdzv-tls-cert, --rdzv-tls-key and --rdzv-tls-ca go together; " +
                   file->name + " is missing");
    }
    if (file->value.empty()) return usage(file->quoted() + " names no file");
  }
  const auto pem = [](const Setting<std::string>& file) {
    return PemFile{file.value, file.shown()};
  };
  return std::optional(Certificates{pem(asked.tls_cert), pem(asked.tls_key), pem(asked.tls_ca)});
}

/// --rdzv-secret-file precedes DDPRUN_SECRET, as an option precedes its variable, and that what is
/// at home. An empty one was meant to be a secret, so it is not taken for none.
Result<void> take_secret(RendezvousConfig& rendezvous, const RendezvousRequest& asked,
                         const Machine& machine) {
  const Setting<std::string>& file = asked.secret_file;
  if (file.given && file.value.empty()) return usage(file.quoted() + " names no file");
  if (file.given) rendezvous.secret_from = file.shown();
  if (file.given && file.value == kNoSecret) return {};
  auto secret =
      file.given ? machine.secret_in(file.value, file.shown()) : machine.secret_of_variable();
  if (!secret) return secret.error();
  rendezvous.secret = std::move(*secret);
  if (file.given) return {};
  if (rendezvous.secret != nullptr) {
    rendezvous.secret_from = kSecretVariable;
    return check_secret(*rendezvous.secret, kSecretVariable);
  }
  if (asked.tls_cert.given) return {};
  auto at_home = machine.secret_at_home();
  if (!at_home) return at_home.error();
  rendezvous.secret = std::move(*at_home);
  if (rendezvous.secret != nullptr) {
    rendezvous.secret_from = home_secret_path(machine.environment());
  }
  return {};
}

Result<void> protect_links(RendezvousPlan& plan, const RendezvousRequest& asked,
                           const Machine& machine) {
  if (!plan.rendezvous) {
    const std::string why = "a single node has no link to protect";
    note_unused(plan, asked.secret_file.given ? asked.secret_file.shown() : "", why);
    note_unused(plan, given_names({&asked.tls_cert, &asked.tls_key, &asked.tls_ca}), why);
    return {};
  }
  auto certificates = certificates_of(asked);
  if (!certificates) return certificates.error();
  auto secret = take_secret(*plan.rendezvous, asked, machine);
  if (!secret) return secret;
  if (*certificates && plan.rendezvous->secret) {
    const Origin& file = asked.secret_file;
    return usage((file.given ? file.shown() : std::string(kSecretVariable)) + " and " +
                 asked.tls_cert.shown() +
                 " exclude each other: links have either a secret or certificates");
  }
  plan.rendezvous->certificates = std::move(*certificates);
  return {};
}

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

Result<RendezvousPlan> plan_rendezvous(const Request& request, const Machine& machine) {
  auto plan = choose_plan(request, machine);
  if (!plan) return plan;
  auto protection = protect_links(*plan, request.rendezvous, machine);
  if (!protection) return protection.error();
  const Setting<coordinator::StatusAccess>& status = request.rendezvous.status;
  note_unused(*plan, status.given && !plan->rendezvous ? status.shown() : "",
              "a single node runs no coordinator");
  plan->store.open = request.rendezvous.store_open;
  plan->warnings = conf_warnings(request.rendezvous.conf);
  return plan;
}

namespace {

/// Run id, role and restarts have the bounds of the link.
Result<void> check_sent_values(const Request& request, const NodeRange& nodes) {
  const std::string bound = " is longer than " + std::to_string(kNameBytesMax) +
                            " bytes, the most that is sent to other nodes";
  const Setting<std::string>& run_id = request.rendezvous.run_id;
  if (run_id.value.empty() && nodes.max > 1) {
    return usage("an empty --rdzv-id cannot name a run of several nodes");
  }
  if (printable(run_id.value) != run_id.value) {
    return usage(run_id.quoted() +
                 " has control characters or is not UTF-8, so it cannot name a run of several "
                 "nodes");
  }
  if (run_id.value.size() > kNameBytesMax) return usage("the run id (--rdzv-id)" + bound);
  if (request.workers.role.size() > kNameBytesMax) return usage("the name of --role" + bound);
  if (request.stopping.config.max_restarts > kRestartsMax) {
    return usage(request.stopping.max_restarts.shown() + " is more than " +
                 std::to_string(kRestartsMax));
  }
  return {};
}

/// --local-addr: what other nodes are told, and where this one listens. They know better what a
/// name means that is loopback here; an address that no interface has is forwarded to one.
Result<void> take_local_addr(RendezvousPlan& plan, const Setting<std::string>& local_addr,
                             const Machine& machine) {
  if (local_addr.value.empty()) return {};
  auto host = parse_host(local_addr.value, local_addr.shown());
  if (!host) return host.error();
  if (is_wildcard_address(*host)) return {};
  plan.rendezvous->address = *host;
  const Whereabouts found = machine.locate(*host);
  if (found.place != Whereabouts::Place::kHere) {
    plan.notes.push_back(local_addr.shown() +
                         " is not an address of this machine: other nodes are told to use it, and "
                         "it has to be forwarded here");
  } else if (named_loopback(*host) || !is_loopback_literal(found.literal)) {
    plan.rendezvous->address = found.literal;
    plan.store.listen_addr = found.literal;
  }
  return {};
}

RendezvousConfig rendezvous_config(const SeveralNodes& several, const RendezvousConf& conf,
                                   ConfUse use) {
  RendezvousConfig config;
  config.coordinator = several.coordinator;
  config.hosts = several.hosts;
  config.etcd = several.etcd;
  config.master = several.master;
  // Where the workers' store has a fixed address, that is on the coordinator's node.
  config.fails_over = !several.etcd && several.master == MasterChoice::kRound;
  config.stands_by = config.fails_over && conf.is_host.value_or(true);
  config.nodes_min = several.nodes.min;
  config.nodes_max = several.nodes.max;
  config.node_rank = several.node_rank;
  config.scheduler_index = several.scheduler_index;
  apply(conf, use, config);
  return config;
}

}  // namespace

Result<RendezvousPlan> plan_several_nodes(const SeveralNodes& several, const Request& request,
                                          const Machine& machine) {
  if (auto sent = check_sent_values(request, several.nodes); !sent) return sent.error();
  const bool is_static = several.master == MasterChoice::kFixed;
  const ConfUse use = is_static      ? ConfUse::kStatic
                      : several.etcd ? ConfUse::kEtcd
                                     : ConfUse::kElastic;
  const CoordinatorAddress& coordinator = several.coordinator;
  const RendezvousRequest& asked = request.rendezvous;
  RendezvousPlan plan;
  name_run(plan, asked.run_id, machine);
  plan.rendezvous = rendezvous_config(several, asked.conf.value, use);
  // With static each node counts its ranks by its own command line, also under torchrun.
  plan.rendezvous->run_is_named = !is_static && asked.run_id.value != kDefaultRunId;
  plan.notes = conf_notes(asked.conf, use);
  if (is_static) {
    plan.store.master_addr = coordinator.host;
    plan.store.master_port = coordinator.port;
  } else {
    if (auto taken = take_local_addr(plan, asked.local_addr, machine); !taken) return taken.error();
    plan.store.host = asked.store_host;
  }
  if (!several.runs_coordinator) return plan;
  // Agents that are given an address come to that one; a name may be another address elsewhere.
  const bool narrow = !several.own_by_loopback && is_address_literal(coordinator.host) &&
                      plain_literal(coordinator.host) == plan.store.listen_addr;
  const std::string bind = narrow ? plan.store.listen_addr : "";
  plan.coordinator = {*several.runs_coordinator, bind, coordinator.port};
  if (several.own_by_loopback) {
    plan.rendezvous->coordinator.host = machine.locate("localhost").literal;
    plan.rendezvous->given_host = coordinator.host;
    if (is_static) plan.store.master_addr = plan.rendezvous->coordinator.host;
  }
  return plan;
}

Error port_of_kernel(const std::string& shown) {
  return usage(shown +
               ": port 0 lets the kernel choose, and other nodes would not know it; pass one, " +
               std::to_string(kC10dPort) + " for example");
}

Error no_such_rank(const Origin& rank, const std::string& nodes, int count) {
  return usage(rank.shown() + ": " + nodes + " have the ranks 0 to " + std::to_string(count - 1));
}

void name_run(RendezvousPlan& plan, const Setting<std::string>& run_id, const Machine& machine) {
  plan.run_id_is_new = run_id.value.empty();
  plan.run_id = RunId(plan.run_id_is_new ? machine.random_id() : run_id.value);
}

void note_unused(RendezvousPlan& plan, const std::string& names, const std::string& why) {
  if (!names.empty()) plan.notes.push_back(names + " not used: " + why);
}

Result<RendezvousPlan> plan_hosts_option(const Request& request, const Machine& machine) {
  const RendezvousRequest& asked = request.rendezvous;
  if (auto allowed = refuse_contradictions(asked); !allowed) return allowed.error();
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
