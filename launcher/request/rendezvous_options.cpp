// The options below "Nodes and rendezvous" in --help.
#include "base/format.hpp"
#include "base/limits.hpp"
#include "launcher/request/rows.hpp"

namespace ddprun {
namespace {

template <auto read, auto member>
constexpr auto to_rendezvous = put<read, &Request::rendezvous, member>;

/// The run's largest number of nodes; 1 for a text that is refused later.
int nodes_max(const Settings& settings) {
  const auto nodes = parse_nodes(settings.origin(Id::kNnodes));
  return nodes ? nodes->max : 1;
}

bool several_nodes(const Settings& settings) {
  return nodes_max(settings) > 1;
}
bool one_node(const Settings& settings) {
  return nodes_max(settings) == 1;
}
bool other_count(const Settings& settings) {
  const auto hosts = split_list(settings.text(Id::kHosts)).size();
  return static_cast<std::size_t>(nodes_max(settings)) != hosts;
}
bool is_static(const Settings& settings) {
  return settings.text(Id::kRdzvBackend) == "static";
}

/// An empty option is a list whose variable was unset in the shell.
Result<std::string> read_hosts(const Given& given) {
  if (!given.text.empty() || !given.given) return given.text;
  return usage(given.quoted() +
               " names no host: list the hosts of all nodes, HOST,HOST, or omit it");
}

/// --standalone replaces it, whatever it is.
Result<Backend> read_backend(const Given& given) {
  if (given.settings.on(Id::kStandalone)) return Backend::kStatic;
  if (given.text == "static") return Backend::kStatic;
  if (given.text == "c10d") return Backend::kC10d;
  if (given.text == "etcd-v3") return Backend::kEtcd;
  if (given.text == "etcd" || given.text == "etcd-v2") {
    return usage(
        given.shown() +
        ": ddprun uses etcd's v3 API: pass --rdzv-backend=etcd-v3 "
        "--rdzv-endpoint=HOST:2379,HOST:2379; without etcd, run ddprun-rdzvd on a host that "
        "all nodes can reach, and pass --rdzv-backend=c10d --rdzv-endpoint=HOST");
  }
  return usage(given.quoted() + " is not one of static, c10d, etcd-v3");
}

/// Several are the servers of etcd.
Result<std::vector<Endpoint>> parse_endpoints(const Origin& origin) {
  std::vector<Endpoint> endpoints;
  if (origin.text.empty()) return endpoints;
  for (const std::string& part : split_list(origin.text)) {
    auto endpoint = parse_endpoint(part, origin.name);
    if (!endpoint && part.empty()) return usage(origin.shown() + ": an endpoint is empty");
    if (!endpoint) return endpoint.error();
    endpoints.push_back(std::move(*endpoint));
  }
  return endpoints;
}

Result<std::optional<Endpoint>> parse_static_endpoint(const Origin& origin) {
  if (origin.text.empty()) return std::optional<Endpoint>();
  if (origin.text.find(',') != std::string::npos) {
    return usage(origin.shown() +
                 ": the static backend has one endpoint, node 0; several are the servers of "
                 "--rdzv-backend=etcd-v3");
  }
  auto endpoint = parse_endpoint(origin.text, origin.name);
  if (!endpoint) return endpoint.error();
  return std::optional(std::move(*endpoint));
}

/// Where it is used. With store_type=file it is a path, which plan_c10d() reads.
Result<void> take_endpoint(const Given& given, Request& request) {
  RendezvousRequest& asked = request.rendezvous;
  asked.endpoint = {given.origin(), std::nullopt};
  const bool is_path = asked.conf.value.file_store && asked.backend.value == Backend::kC10d;
  if (is_path || asked.standalone.value || !asked.hosts.value.empty()) return {};
  if (asked.backend.value == Backend::kStatic) {
    return put<parse_static_endpoint, &Request::rendezvous, &RendezvousRequest::endpoint>(given,
                                                                                          request);
  }
  auto endpoints = parse_endpoints(given);
  if (!endpoints) return endpoints.error();
  if (!endpoints->empty()) asked.endpoint.value = endpoints->front();
  asked.endpoints = std::move(*endpoints);
  return {};
}

Result<std::int64_t> read_master_port(const Given& given) {
  return given.given ? given.settings.integer(given.id) : kStaticPort;
}

/// Its text is one of the choices.
Result<coordinator::StatusAccess> read_status(const Given& given) {
  return coordinator::parse_status_access(given.text).value();
}

constexpr OptionSpec kRendezvousRows[]{
    {.id = Id::kHosts,
     .name = "hosts",
     .metavar = "A,B,C",
     .help = "All nodes, the same list on each: HOST or HOST:PORT. Replaces --nnodes, backend "
             "and endpoint. Each node finds its position by its addresses; the first one runs "
             "the coordinator, on its PORT or 29400.",
     .brief = "all nodes, the same list on each",
     .yields_to = {{Id::kStandalone},
                   {Id::kNnodes, other_count},
                   {Id::kRdzvEndpoint},
                   {Id::kMasterAddr},
                   {Id::kMasterPort},
                   {Id::kRdzvBackend, is_static}},
     .of_scheduler = true,
     .take = to_rendezvous<read_hosts, &RendezvousRequest::hosts>},
    {.id = Id::kNnodes,
     .name = "nnodes",
     .variable = Variable::kPet,
     .metavar = "N|MIN:MAX",
     .preset = "1:1",
     .help = "Number of nodes; with c10d it may be a range: the run starts with MIN, and nodes "
             "may come and go up to MAX.",
     .brief = "number of nodes; default 1",
     .yields_to = {{Id::kStandalone, several_nodes}, {Id::kHosts, other_count}},
     .of_scheduler = true,
     .take = to_rendezvous<parse_nodes, &RendezvousRequest::nodes>},
    {.id = Id::kStandalone,
     .name = "standalone",
     .value = Value::kFlag,
     .variable = Variable::kPet,
     .help = "Single node, with a free port and a unique run id. The default for one node if "
             "neither --master-port nor a backend or endpoint is given.",
     .yields_to = {{Id::kNnodes, several_nodes}, {Id::kRdzvEndpoint}, {Id::kHosts}},
     .of_scheduler = true,
     .take = to_rendezvous<as_flag, &RendezvousRequest::standalone>},
    {.id = Id::kRdzvBackend,
     .name = "rdzv-backend",
     .variable = Variable::kPet,
     .metavar = "c10d|static|etcd-v3",
     .preset = "static",
     .help = "How nodes form a run: c10d (elastic), static (numbered nodes, a fixed address), or "
             "etcd-v3 (elastic; the coordinator is elected in etcd, and any node may be lost).",
     .brief = "how nodes form a run; default static",
     .yields_to = {{Id::kHosts, is_static}},
     .of_scheduler = true,
     .take = to_rendezvous<read_backend, &RendezvousRequest::backend>},
    {.id = Id::kRdzvConf,
     .name = "rdzv-conf",
     .variable = Variable::kPet,
     .metavar = "K=V,...",
     .help = "Limits of the rendezvous of several nodes, in seconds or with a unit (90s, 10m): "
             "join_timeout=600, last_call_timeout=30, keep_alive_interval=1, "
             "keep_alive_max_attempt=5, coordinator_timeout=60, timeout=900 (static), is_host; "
             "for etcd-v3 protocol, cacert, cert, key, user, password_file, etcd_prefix=/ddprun.",
     .of_scheduler = true,
     .take = to_rendezvous<parse_conf, &RendezvousRequest::conf>},
    {.id = Id::kRdzvEndpoint,
     .name = "rdzv-endpoint",
     .variable = Variable::kPet,
     .metavar = "HOST[:PORT]",
     .help = "Address of the rendezvous: HOST, HOST:PORT, [V6]:PORT. With c10d the port is 29400 "
             "unless given, and the node whose address it is runs the coordinator, until another "
             "one takes its place. With static: MASTER_ADDR and MASTER_PORT of the workers. With "
             "etcd-v3: the servers of etcd, HOST:2379,HOST:2379.",
     .brief = "address of the rendezvous",
     .yields_to = {{Id::kNnodes, one_node},
                   {Id::kHosts},
                   {Id::kMasterAddr, is_static},
                   {Id::kMasterPort, is_static}},
     .of_scheduler = true,
     .take = take_endpoint},
    {.id = Id::kRdzvId,
     .name = "rdzv-id",
     .variable = Variable::kPet,
     .metavar = "ID",
     .preset = kDefaultRunId,
     .help = "Name of the run: TORCHELASTIC_RUN_ID and the first part of the log directory's "
             "name.",
     .brief = "name of the run",
     .take = to_rendezvous<as_text, &RendezvousRequest::run_id>},
    {.id = Id::kRdzvSecretFile,
     .name = "rdzv-secret-file",
     .metavar = "FILE",
     .help =
         "File with the secret of the run, the same on every node: without it no node joins, "
         "and links of nodes are encrypted (TLS 1.3). At least 32 characters, readable only "
         "for its owner; -: the first line of standard input; off: no secret. Without it: "
         "DDPRUN_SECRET, else ~/.config/ddprun/secret (ddprun secret --new), else links in clear "
         "text.",
     .yields_to = {{Id::kRdzvTlsCert}},
     .take = to_rendezvous<as_text, &RendezvousRequest::secret_file>},
    {.id = Id::kRdzvTlsCert,
     .name = "rdzv-tls-cert",
     .metavar = "FILE",
     .help = "In place of a secret: the certificate of this node (PEM). Nodes without one of the "
             "same CA do not join, and links of nodes are encrypted (TLS 1.3). That of the "
             "coordinator names the host of --rdzv-endpoint.",
     .yields_to = {{Id::kRdzvSecretFile}},
     .take = to_rendezvous<as_text, &RendezvousRequest::tls_cert>},
    {.id = Id::kRdzvTlsKey,
     .name = "rdzv-tls-key",
     .metavar = "FILE",
     .help = "Key of --rdzv-tls-cert, readable only for its owner.",
     .yields_to = {{Id::kRdzvSecretFile}},
     .take = to_rendezvous<as_text, &RendezvousRequest::tls_key>},
    {.id = Id::kRdzvTlsCa,
     .name = "rdzv-tls-ca",
     .metavar = "FILE",
     .help = "Certificates of the CA that has signed those of all nodes.",
     .yields_to = {{Id::kRdzvSecretFile}},
     .take = to_rendezvous<as_text, &RendezvousRequest::tls_ca>},
    {.id = Id::kNodeRank,
     .name = "node-rank",
     .value = Value::kInteger,
     .variable = Variable::kPet,
     .metavar = "N",
     .preset = "0",
     .help = "Rank of this node, from 0: with static different on each node; optional with c10d, "
             "where it orders the nodes of the first round; with --hosts this node's entry.",
     .yields_to = {{Id::kNnodes, one_node}},
     .of_scheduler = true,
     .take = to_rendezvous<as_integer, &RendezvousRequest::node_rank>},
    {.id = Id::kMasterAddr,
     .name = "master-addr",
     .variable = Variable::kPet,
     .metavar = "HOST",
     .preset = "127.0.0.1",
     .help = "With static: MASTER_ADDR of the workers, an address of node 0.",
     .yields_to = {{Id::kHosts}},
     .of_scheduler = true,
     .take = to_rendezvous<as_text, &RendezvousRequest::master_addr>},
    {.id = Id::kMasterPort,
     .name = "master-port",
     .value = Value::kInteger,
     .variable = Variable::kPet,
     .metavar = "PORT",
     .help = "With static: MASTER_PORT of the workers, default 29500. On one node without it: a "
             "free port, a new one after each restart.",
     .yields_to = {{Id::kHosts}},
     .of_scheduler = true,
     .take = to_rendezvous<read_master_port, &RendezvousRequest::master_port>},
    {.id = Id::kLocalAddr,
     .name = "local-addr",
     .variable = Variable::kPet,
     .metavar = "HOST",
     .help = "Address of this node, passed to workers as MASTER_ADDR (standalone and c10d). "
             "Default: the address from which the node reaches the coordinator.",
     .of_scheduler = true,
     .take = to_rendezvous<as_text, &RendezvousRequest::local_addr>},
    {.id = Id::kStoreOpen,
     .name = "store-open",
     .value = Value::kFlag,
     .help = "Lets every client use the store of the workers, which this node serves if it has "
             "rank 0. Default: only addresses of the nodes, and on this machine only the same "
             "user, root and users that its workers run as.",
     .take = to_rendezvous<as_flag, &RendezvousRequest::store_open>},
    {.id = Id::kStatus,
     .name = "status",
     .value = Value::kChoice,
     .metavar = coordinator::kStatusMetavar,
     .preset = coordinator::kStatusPreset,
     .choices = coordinator::kStatusChoices,
     .help = coordinator::kStatusHelp,
     .take = to_rendezvous<read_status, &RendezvousRequest::status>},
    {.id = Id::kAllowDifferentCommands,
     .name = "allow-different-commands",
     .value = Value::kFlag,
     .help = "Allow nodes of one run to run different programs; pass it on every node. Without it, "
             "and without --rdzv-id, they are refused, because two jobs at one endpoint would "
             "become one. Arguments may always differ.",
     .take = put<as_flag, &Request::workers, &WorkerRequest::commands_may_differ>},
};

}  // namespace

std::span<const OptionSpec> rendezvous_options() {
  return kRendezvousRows;
}

Result<NodeRange> parse_nodes(const Origin& origin) {
  const auto colon = origin.text.find(':');
  const auto min = parse_integer(origin.text.substr(0, colon));
  const auto max = colon == std::string::npos ? min : parse_integer(origin.text.substr(colon + 1));
  if (!min || !max || *min <= 0 || *min > *max) {
    return usage(origin.quoted() + " is neither a number of nodes nor MIN:MAX with 0 < MIN <= MAX");
  }
  if (*max > kNodesMax) {
    return usage(origin.quoted() + ": a run has at most " + std::to_string(kNodesMax) + " nodes");
  }
  return NodeRange{static_cast<int>(*min), static_cast<int>(*max)};
}

std::string text_of(const NodeRange& nodes) {
  return count_text(nodes.min, nodes.max, "node");
}

}  // namespace ddprun
