// The ways in which the nodes of a run find each other, but for lists of hosts: alone, c10d,
// static, etcd.
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include "base/address.hpp"
#include "base/limits.hpp"
#include "base/printable.hpp"
#include "base/secret.hpp"
#include "launcher/options/values.hpp"
#include "launcher/rendezvous/plan.hpp"
#include "launcher/request/request.hpp"

namespace ddprun {

namespace {

void note_static_options(RendezvousPlan& plan, const RendezvousRequest& asked) {
  note_unused(plan, given_names({&asked.master_addr, &asked.master_port}),
              "they belong to the static backend");
}

/// --node-rank orders the first round; one beyond the run's nodes belongs to a spare.
Result<std::optional<int>> elastic_node_rank(const RendezvousRequest& asked) {
  const Setting<std::int64_t>& rank = asked.node_rank;
  if (!rank.given) return std::optional<int>();
  if (rank.value < 0) return usage(rank.shown() + " is not a node rank");
  if (rank.value >= asked.nodes.value.max) return std::optional<int>();
  return std::optional(static_cast<int>(rank.value));
}

/// The address under which this node would run the coordinator.
Result<std::string> address_to_offer(const RendezvousRequest& asked, const Machine& machine) {
  const Setting<std::string>& given = asked.local_addr;
  if (!given.value.empty()) return parse_host(given.value, given.shown());
  std::string name = machine.host_name();
  const Whereabouts found = machine.locate(name);
  const bool is_outward =
      found.place == Whereabouts::Place::kHere && !is_loopback_literal(found.literal);
  return is_outward ? found.literal : name;  // other nodes know better what it means
}

/// Like those of schedulers: outside of what the kernel gives to clients, so probably free.
std::uint16_t port_to_offer(const Machine& machine) {
  const std::string digits = machine.random_id().substr(0, 8);
  const unsigned long number = std::strtoul(digits.c_str(), nullptr, 16);
  return static_cast<std::uint16_t>(kSchedulerPortFirst + number % kSchedulerPortCount);
}

/// Without blanks and line ends, and different for each run id.
std::string as_key(const std::string& run_id) {
  std::string key;
  for (const char letter : run_id) {
    if (letter == '\\') key += '\\';
    key += letter == ' ' ? "\\s" : std::string(1, letter);
  }
  return printable(key);
}

/// --rdzv-conf store_type=file: where the nodes that name one file find each other, as the first of
/// them has written there. Without a port in a dry run before any has.
Result<Endpoint> endpoint_in_file(const RendezvousRequest& asked, const Machine& machine) {
  const std::string& path = asked.endpoint.text;
  if (path.empty()) {
    return usage("--rdzv-conf store_type=file: " + text_of(asked.nodes.value) +
                 " need the path of one file: pass it as --rdzv-endpoint");
  }
  auto own = address_to_offer(asked, machine);
  if (!own) return own.error();
  const std::string offer =
      machine.host_name() + " " + text_of(Endpoint{*own, port_to_offer(machine)});
  const Agree agree = asked.leaves_no_trace ? Agree::kLook : Agree::kWrite;
  auto agreed = machine.agreed_line(path, as_key(asked.run_id.value), offer, agree);
  if (!agreed) return agreed.error();
  if (agreed->empty()) return Endpoint{*own, std::nullopt};
  std::istringstream words(*agreed);
  std::string host;
  std::string address;
  words >> host >> address;
  auto endpoint = parse_endpoint(address, asked.endpoint.shown() + ", its line " + *agreed);
  if (!endpoint) return endpoint.error();
  const bool elsewhere = host != machine.host_name() && named_loopback(endpoint->host);
  if (!elsewhere) return endpoint;
  return usage(asked.endpoint.shown() + ": " + host + " offers " + address +
               ", which no other machine can reach; pass --local-addr on " + host);
}

Result<RendezvousPlan> plan_c10d_alone(const Request& request, const Machine& machine) {
  auto plan = plan_single_node(request, machine);
  if (!plan) return plan;
  const RendezvousRequest& asked = request.rendezvous;
  note_static_options(*plan, asked);
  if (asked.endpoint.value && asked.endpoint.value->port.value_or(0) != 0) {
    note_unused(*plan, asked.endpoint.shown(),
                "a single node needs no rendezvous; with --rdzv-conf is_host=false it joins the "
                "ddprun-rdzvd at that address");
  }
  return plan;
}

/// Whether this node may or must run the coordinator: as under torchrun also if the endpoint's name
/// is this node's, whatever it resolves to.
std::optional<CoordinatorPlan::Need> c10d_coordinator_need(const std::string& host,
                                                           Whereabouts::Place place,
                                                           std::optional<bool> is_host,
                                                           const Machine& machine) {
  using Need = CoordinatorPlan::Need;
  if (is_host) return *is_host ? std::optional(Need::kMust) : std::nullopt;
  const bool named = !is_address_literal(host) && same_host_name(host, machine.host_name());
  return place == Whereabouts::Place::kHere || named ? std::optional(Need::kMay) : std::nullopt;
}

Result<void> check_c10d_address(const CoordinatorAddress& address, const std::string& shown,
                                bool must_host) {
  if (is_wildcard_address(address.host) && !must_host) {
    return usage(shown + ": " + address.host +
                 " is not an address other nodes can reach; use the address of the node that runs "
                 "the rendezvous");
  }
  if (address.port != 0) return {};
  return port_of_kernel(shown);
}

void add_c10d_notes(RendezvousPlan& plan, const RendezvousRequest& asked) {
  const std::string nodes = text_of(asked.nodes.value);
  const bool spare = asked.node_rank.given && !plan.rendezvous->node_rank;
  note_unused(plan, spare ? asked.node_rank.shown() : "",
              "the run has " + nodes + ", so this node may become a spare");
  if (!asked.endpoint.value) {
    plan.notes.push_back("no --rdzv-endpoint is given: the " + nodes +
                         " rendezvous at localhost:" + std::to_string(kC10dPort) +
                         ", so all of them have to run on this machine");
  }
  note_static_options(plan, asked);
}

/// As if the endpoint that stands in the file had been given.
Result<RendezvousPlan> plan_c10d_by_file(const Request& request, const Machine& machine) {
  const RendezvousRequest& asked = request.rendezvous;
  if (asked.nodes.value.max == 1) return plan_c10d_alone(request, machine);
  auto endpoint = endpoint_in_file(asked, machine);
  if (!endpoint) return endpoint.error();
  const bool is_open = !endpoint->port;
  Request by_address = request;
  by_address.rendezvous.endpoint.value = std::move(*endpoint);
  by_address.rendezvous.conf.value.file_store = false;
  by_address.rendezvous.conf.value.is_host = std::nullopt;
  auto plan = plan_c10d(by_address, machine);
  if (plan) plan->coordinator_is_open = is_open;
  return plan;
}

/// The workers of one node are all here: an address that this machine does not have is of no use to
/// them, whatever is forwarded.
void take_address(RendezvousPlan& plan, const std::string& host, const Machine& machine) {
  plan.store.listen_addr = machine.locate("localhost").literal;
  plan.store.master_addr = plan.store.listen_addr;
  if (host.empty()) return;
  const Whereabouts found = machine.locate(host);
  if (found.place == Whereabouts::Place::kHere) {
    plan.store.master_addr = host;
    plan.store.listen_addr = found.literal;
    return;
  }
  plan.notes.push_back(host +
                       " is not an address of this machine: the workers of its one node use " +
                       plan.store.master_addr);
}

constexpr std::uint16_t kEtcdPort = 2379;

EtcdConfig etcd_config(const RendezvousRequest& asked) {
  const RendezvousConf& conf = asked.conf.value;
  EtcdConfig etcd;
  for (const Endpoint& endpoint : asked.endpoints) {
    etcd.endpoints.push_back({endpoint.host, endpoint.port.value_or(kEtcdPort)});
    const CoordinatorAddress& address = etcd.endpoints.back();
    etcd.text += (etcd.text.empty() ? "etcd " : ",") + host_and_port(address.host, address.port);
  }
  if (!conf.etcd_prefix.empty()) etcd.prefix = conf.etcd_prefix;
  etcd.user = conf.user;
  etcd.password_file = conf.password_file;
  if (conf.protocol == "https") etcd.tls = conf.etcd_tls;
  etcd.may_lead = conf.is_host.value_or(true);
  return etcd;
}

/// A password in clear text may have been meant to be protected.
Result<void> check_etcd_tls(const RendezvousConf& conf) {
  const Certificates& tls = conf.etcd_tls;
  if (!tls.key.path.empty() && tls.cert.path.empty()) {
    return usage(tls.key.shown + " belongs to a certificate; pass cert=FILE, too");
  }
  for (const PemFile& file : {tls.cert, tls.key, tls.ca}) {
    if (file.path.empty() || conf.protocol == "https") continue;
    return usage(file.shown + " is for TLS; pass protocol=https, too");
  }
  return {};
}

Result<void> check_etcd(const RendezvousRequest& asked) {
  const RendezvousConf& conf = asked.conf.value;
  if (asked.endpoints.empty()) {
    return usage(asked.backend.shown() +
                 " needs the servers of etcd: --rdzv-endpoint=HOST:2379,HOST:2379");
  }
  for (const Endpoint& endpoint : asked.endpoints) {
    if (endpoint.port == 0) return usage(asked.endpoint.shown() + ": port 0 is no server's");
  }
  if (conf.user.empty() != conf.password_file.empty()) {
    return usage(asked.conf.shown() + ": user and password_file go together");
  }
  return check_etcd_tls(conf);
}

/// A single node with MASTER_ADDR and MASTER_PORT as given, if that is an address of this machine.
Result<RendezvousPlan> plan_single_node_at(const Endpoint& master, const Request& request,
                                           const Machine& machine) {
  const RendezvousRequest& asked = request.rendezvous;
  if (asked.node_rank.value != 0) {
    return usage(asked.node_rank.shown() + ", but a run of one node has node 0 only");
  }
  RendezvousPlan plan;
  name_run(plan, asked.run_id, machine);
  plan.store.master_port = master.port.value_or(0);
  plan.notes = conf_notes(asked.conf, ConfUse::kSingleNode);
  take_address(plan, master.host, machine);
  note_unused(plan, given_names({&asked.local_addr}), "the static backend has a fixed address");
  return plan;
}

Result<Endpoint> master_of(const RendezvousRequest& asked) {
  if (asked.endpoint.value) {
    if (asked.endpoint.value->port) return *asked.endpoint.value;
    return usage(
        asked.endpoint.shown() +
        " has no port, which the static backend needs: write HOST:PORT, or use --master-addr "
        "and --master-port");
  }
  const std::int64_t port = asked.master_port.value;
  if (port < 0 || port > UINT16_MAX) {
    return usage(asked.master_port.shown() + " is not a port: it must be 0 to 65535");
  }
  auto host = parse_host(asked.master_addr.value, asked.master_addr.shown(), "--master-port");
  if (!host) return host.error();
  return Endpoint{*host, static_cast<std::uint16_t>(port)};
}

Result<void> check_static_rank(const RendezvousRequest& asked) {
  const NodeRange& nodes = asked.nodes.value;
  const std::string max = std::to_string(nodes.max);
  if (asked.node_rank.value >= 0 && asked.node_rank.value < nodes.max) return {};
  return no_such_rank(asked.node_rank, "the " + max + " nodes of " + asked.nodes.shown(),
                      nodes.max);
}

void add_static_notes(RendezvousPlan& plan, const RendezvousRequest& asked) {
  const NodeRange& nodes = asked.nodes.value;
  if (nodes.min != nodes.max) {
    plan.notes.push_back(asked.nodes.shown() + ": the static backend starts with all " +
                         std::to_string(nodes.max) + " nodes; --rdzv-backend=c10d starts with " +
                         std::to_string(nodes.min));
  }
  const bool zero = asked.node_rank.value == 0;
  const bool against = asked.conf.value.is_host.value_or(zero) != zero;
  note_unused(plan, against ? asked.conf.name + " is_host" : "",
              "with the static backend node rank 0 runs the coordinator");
  note_unused(plan, given_names({&asked.local_addr}), "the static backend has a fixed address");
  if (!asked.master_addr.given && !asked.endpoint.given) {
    plan.notes.push_back("no --master-addr is given: all nodes have to run on this machine");
  }
}

Result<RendezvousPlan> plan_static_nodes(const Endpoint& master, const Request& request,
                                         const Machine& machine) {
  const RendezvousRequest& asked = request.rendezvous;
  if (auto rank = check_static_rank(asked); !rank) return rank.error();
  if (*master.port == 0) {
    return usage(
        "with MASTER_PORT 0 the kernel picks a port that the other nodes cannot know: pass "
        "--master-port, for example " +
        std::to_string(kStaticPort));
  }
  SeveralNodes several;
  several.nodes = {asked.nodes.value.max, asked.nodes.value.max};
  several.coordinator = {master.host, *master.port};
  several.master = MasterChoice::kFixed;
  several.node_rank = static_cast<int>(asked.node_rank.value);
  if (*several.node_rank == 0) {
    several.runs_coordinator = CoordinatorPlan::Need::kMust;
    several.own_by_loopback = machine.locate(master.host).place != Whereabouts::Place::kHere;
  }
  auto plan = plan_several_nodes(several, request, machine);
  if (!plan) return plan;
  if (plan->coordinator) plan->coordinator->rank_by_default = !asked.node_rank.given;
  add_static_notes(*plan, asked);
  return plan;
}

}  // namespace

Result<RendezvousPlan> plan_c10d(const Request& request, const Machine& machine) {
  const RendezvousRequest& asked = request.rendezvous;
  if (asked.conf.value.file_store) return plan_c10d_by_file(request, machine);
  if (asked.endpoints.size() > 1) {
    return usage(
        asked.endpoint.shown() +
        ": c10d has one endpoint, and if its node is lost another node of the run takes its "
        "place; several are the servers of --rdzv-backend=etcd-v3");
  }
  const Endpoint endpoint = asked.endpoint.value.value_or(Endpoint{"localhost", kC10dPort});
  const std::optional<bool> is_host = asked.conf.value.is_host;
  const Whereabouts found = machine.locate(endpoint.host);
  SeveralNodes several;
  several.nodes = asked.nodes.value;
  several.coordinator = {endpoint.host, endpoint.port.value_or(kC10dPort)};
  const bool own = found.place == Whereabouts::Place::kHere && is_host.value_or(true);
  if (several.nodes.max == 1 && own) return plan_c10d_alone(request, machine);
  const std::string shown = asked.endpoint.shown();
  auto usable = check_c10d_address(several.coordinator, shown, is_host.value_or(false));
  if (!usable) return usable.error();
  auto rank = elastic_node_rank(asked);
  if (!rank) return rank.error();
  several.node_rank = *rank;
  several.runs_coordinator = c10d_coordinator_need(endpoint.host, found.place, is_host, machine);
  several.own_by_loopback = found.place != Whereabouts::Place::kHere;
  auto plan = plan_several_nodes(several, request, machine);
  if (!plan) return plan;
  if (several.runs_coordinator) plan->rendezvous->namesakes = found.others;
  add_c10d_notes(*plan, asked);
  return plan;
}

Result<RendezvousPlan> plan_single_node(const Request& request, const Machine& machine) {
  const RendezvousRequest& asked = request.rendezvous;
  RendezvousPlan plan;
  name_run(plan, asked.run_id, machine);
  plan.store.host = asked.store_host;
  plan.notes = conf_notes(asked.conf, ConfUse::kSingleNode);
  std::string local = asked.local_addr.value;
  if (!local.empty()) {
    auto host = parse_host(local, asked.local_addr.shown());
    if (!host) return host.error();
    local = std::move(*host);
  }
  take_address(plan, local, machine);
  return plan;
}

Result<RendezvousPlan> plan_standalone(const Request& request, const Machine& machine) {
  const RendezvousRequest& asked = request.rendezvous;
  auto plan = plan_single_node(request, machine);
  if (!plan) return plan;
  plan->run_id = RunId(machine.random_id());
  plan->run_id_is_new = true;
  if (asked.standalone.value) {
    Setting<Backend> backend = asked.backend;
    backend.given = backend.given && backend.text != "c10d";  // which it is
    note_unused(*plan,
                given_names({&backend, &asked.endpoint, &asked.run_id, &asked.master_addr,
                             &asked.master_port}),
                asked.standalone.name + " chooses a free port and a run id");
  } else {
    note_unused(*plan, given_names({&asked.run_id, &asked.master_addr}),
                "one node without --master-port runs standalone");
  }
  // A user who numbers nodes may have forgotten their count.
  note_unused(*plan, asked.node_rank.value == 0 ? "" : asked.node_rank.shown(),
              "the run has one node (--nnodes)");
  return plan;
}

Result<RendezvousPlan> plan_static(const Request& request, const Machine& machine) {
  const RendezvousRequest& asked = request.rendezvous;
  auto master = master_of(asked);
  if (!master) return master.error();
  auto plan = asked.nodes.value.max == 1 ? plan_single_node_at(*master, request, machine)
                                         : plan_static_nodes(*master, request, machine);
  if (plan && asked.endpoint.value) {
    note_unused(*plan, given_names({&asked.master_addr, &asked.master_port}),
                asked.endpoint.name + " gives the address of the rendezvous");
  }
  return plan;
}

Result<RendezvousPlan> plan_etcd(const Request& request, const Machine& machine) {
  const RendezvousRequest& asked = request.rendezvous;
  if (auto usable = check_etcd(asked); !usable) return usable.error();
  auto rank = elastic_node_rank(asked);
  if (!rank) return rank.error();
  if (asked.nodes.value.max == 1) {
    auto plan = plan_single_node(request, machine);
    if (plan) note_unused(*plan, asked.endpoint.shown(), "a single node needs no rendezvous");
    return plan;
  }
  SeveralNodes several;
  several.nodes = asked.nodes.value;
  several.etcd = etcd_config(asked);
  several.coordinator = several.etcd->endpoints.front();  // loopback, if all nodes are here
  several.node_rank = *rank;
  auto plan = plan_several_nodes(several, request, machine);
  if (plan) note_static_options(*plan, asked);
  return plan;
}

Result<void> read_etcd_password(LaunchConfig& config) {
  if (!config.rendezvous || !config.rendezvous->etcd) return {};
  EtcdConfig& etcd = *config.rendezvous->etcd;
  if (etcd.password_file.empty()) return {};
  struct stat facts = {};
  if (::stat(etcd.password_file.c_str(), &facts) == 0) {
    auto is_private =
        refuse_exposed(facts, "--rdzv-conf password_file=" + etcd.password_file, "password");
    if (!is_private) return is_private;
  }
  std::ifstream file(etcd.password_file);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  if (!file.is_open() || text.empty()) {
    return usage("--rdzv-conf password_file=" + etcd.password_file +
                 " cannot be read, or is empty; it has the password of etcd's user " + etcd.user);
  }
  etcd.password = std::move(text);
  return {};
}

}  // namespace ddprun
