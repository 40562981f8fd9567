#include "launcher/rules/meeting.hpp"

#include <utility>

#include "launcher/options/numbers.hpp"
#include "launcher/rules/endpoint.hpp"
#include "launcher/rules/rendezvous_conf.hpp"

namespace ddprun {
namespace {

using Id = OptionId;

constexpr const char* kLoopback = "127.0.0.1";
constexpr std::uint16_t kStaticPort = 29500;

Error usage(std::string sentence) {
  return {ErrorKind::kUsage, std::move(sentence)};
}

struct NodeRange {
  std::int64_t min;
  std::int64_t max;
};

Result<NodeRange> parse_nodes(const Settings& settings) {
  const std::string& text = settings.text(Id::kNnodes);
  const auto colon = text.find(':');
  const auto min = parse_integer(text.substr(0, colon));
  const auto max = colon == std::string::npos ? min : parse_integer(text.substr(colon + 1));
  if (min && max && *min > 0 && *min <= *max) return NodeRange{*min, *max};
  return usage(settings.named(Id::kNnodes) + "='" + text +
               "' is neither a number of nodes nor MIN:MAX with 0 < MIN <= MAX");
}

Result<void> check_one_node(const Settings& settings) {
  auto nodes = parse_nodes(settings);
  if (!nodes) return nodes.error();
  if (nodes->max == 1) return {};
  if (settings.on(Id::kStandalone)) {
    return usage(settings.named(Id::kStandalone) + " is one node, but " +
                 settings.shown(Id::kNnodes) + " asks for more: drop one of the two");
  }
  return Error{
      ErrorKind::kUnsupported,
      settings.shown(Id::kNnodes) + ": runs of several nodes are not built yet; --nnodes=1 works"};
}

Result<void> check_backend(const Settings& settings) {
  const std::string& backend = settings.text(Id::kRdzvBackend);
  if (backend == "static" || backend == "c10d") return {};
  if (backend == "etcd" || backend == "etcd-v2") {
    return Error{ErrorKind::kUnsupported,
                 settings.shown(Id::kRdzvBackend) + " is not built yet; c10d and static work"};
  }
  return usage(settings.named(Id::kRdzvBackend) + "='" + backend + "' is not one of static, c10d");
}

/// torchrun's rule since 2.12: a plain run on one node is standalone.
bool standalone_is_implied(const Settings& settings) {
  return settings.text(Id::kRdzvBackend) == "static" && settings.text(Id::kRdzvEndpoint).empty() &&
         !settings.given(Id::kMasterPort);
}

/// "--rdzv-id and --master-addr", or nothing.
std::string given_ones(const Settings& settings, std::initializer_list<Id> candidates) {
  std::vector<std::string> names;
  for (const Id id : candidates) {
    if (settings.given(id)) names.push_back(settings.named(id));
  }
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  }
  return text;
}

void note_unused(Meeting& meeting, const std::string& names, const std::string& why) {
  if (!names.empty()) meeting.notes.push_back(names + " not used: " + why);
}

StoreHost shared_store(const Machine& machine) {
  const bool off =
      value_or(machine.environment(), "TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "0") == "1";
  return off ? StoreHost::kWorkerZero : StoreHost::kAgent;
}

/// Standalone and c10d: this node's own address, loopback unless the user names one.
Result<Meeting> on_this_node(const Settings& settings, const Machine& machine) {
  Meeting meeting;
  meeting.master_addr = settings.text(Id::kLocalAddr);
  if (meeting.master_addr.empty()) meeting.master_addr = kLoopback;
  meeting.store_host = shared_store(machine);
  auto literal = machine.own_address(meeting.master_addr);
  if (!literal)
    return Error{ErrorKind::kUsage,
                 settings.shown(Id::kLocalAddr) + ": " + literal.error().sentence};
  meeting.listen_addr = *literal;
  return meeting;
}

Result<Meeting> standalone(const Settings& settings, const Machine& machine) {
  auto meeting = on_this_node(settings, machine);
  if (!meeting) return meeting;
  meeting->run_id = RunId(machine.random_id());
  if (settings.on(Id::kStandalone)) {
    const std::string names =
        given_ones(settings, {Id::kRdzvEndpoint, Id::kRdzvId, Id::kMasterAddr, Id::kMasterPort});
    note_unused(*meeting, names,
                settings.named(Id::kStandalone) + " chooses a free port and a run id");
  } else {
    note_unused(*meeting, given_ones(settings, {Id::kRdzvId, Id::kMasterAddr}),
                "one node without --master-port runs standalone");
  }
  return meeting;
}

Result<Meeting> through_c10d(const Settings& settings, const Machine& machine) {
  auto meeting = on_this_node(settings, machine);
  if (!meeting) return meeting;
  meeting->run_id = RunId(settings.text(Id::kRdzvId));
  note_unused(*meeting, given_ones(settings, {Id::kMasterAddr, Id::kMasterPort}),
              "they belong to the static backend");
  const std::string& text = settings.text(Id::kRdzvEndpoint);
  if (text.empty()) return meeting;
  auto endpoint = parse_endpoint(text, settings.named(Id::kRdzvEndpoint));
  if (!endpoint) return endpoint.error();
  auto own = machine.own_address(endpoint->host);
  if (!own) {
    return Error{ErrorKind::kUnsupported, settings.shown(Id::kRdzvEndpoint) + ": " +
                                              own.error().sentence +
                                              "; meeting on another machine is not built yet"};
  }
  if (endpoint->port.value_or(0) != 0) {
    note_unused(*meeting, settings.shown(Id::kRdzvEndpoint),
                "one node has nobody to wait for there");
  }
  return meeting;
}

Result<Endpoint> static_endpoint(const Settings& settings) {
  const std::string& text = settings.text(Id::kRdzvEndpoint);
  if (!text.empty()) {
    auto endpoint = parse_endpoint(text, settings.named(Id::kRdzvEndpoint));
    if (!endpoint || endpoint->port) return endpoint;
    return usage(
        settings.shown(Id::kRdzvEndpoint) +
        " has no port, which the static backend needs: write HOST:PORT, or use --master-addr "
        "and --master-port");
  }
  const std::int64_t port =
      settings.given(Id::kMasterPort) ? settings.integer(Id::kMasterPort) : kStaticPort;
  if (port < 0 || port > UINT16_MAX) {
    return usage(settings.shown(Id::kMasterPort) + " is not a port: it must be 0 to 65535");
  }
  return Endpoint{settings.text(Id::kMasterAddr), static_cast<std::uint16_t>(port)};
}

Result<Meeting> at_fixed_address(const Settings& settings, const Machine& machine) {
  auto endpoint = static_endpoint(settings);
  if (!endpoint) return endpoint.error();
  if (settings.integer(Id::kNodeRank) != 0) {
    return usage(settings.shown(Id::kNodeRank) + ", but a run of one node has node 0 only");
  }
  auto own = machine.own_address(endpoint->host);
  if (!own) return usage("MASTER_ADDR " + endpoint->host + ": " + own.error().sentence);
  Meeting meeting;
  meeting.run_id = RunId(settings.text(Id::kRdzvId));
  meeting.master_addr = endpoint->host;
  meeting.listen_addr = *own;
  meeting.master_port = *endpoint->port;
  note_unused(meeting, given_ones(settings, {Id::kLocalAddr}),
              "the static backend has a fixed address");
  return meeting;
}

Result<Meeting> choose(const Settings& settings, const Machine& machine) {
  if (settings.on(Id::kStandalone) || standalone_is_implied(settings))
    return standalone(settings, machine);
  if (settings.text(Id::kRdzvBackend) == "c10d") return through_c10d(settings, machine);
  return at_fixed_address(settings, machine);
}

}  // namespace

Result<Meeting> arrange_meeting(const Settings& settings, const Machine& machine) {
  auto one_node = check_one_node(settings);
  if (!one_node) return one_node.error();
  auto backend = check_backend(settings);
  if (!backend) return backend.error();
  auto conf = check_rendezvous_conf(settings);
  if (!conf) return conf.error();
  auto meeting = choose(settings, machine);
  if (meeting && !conf->empty()) meeting->notes.push_back(*conf);
  return meeting;
}

}  // namespace ddprun
