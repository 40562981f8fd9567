#include "launcher/rendezvous/plan.hpp"

#include "launcher/rendezvous/c10d.hpp"
#include "launcher/rendezvous/hosts.hpp"
#include "launcher/rendezvous/nodes.hpp"
#include "launcher/rendezvous/plan_parts.hpp"
#include "launcher/rendezvous/single_node.hpp"
#include "launcher/rendezvous/static_nodes.hpp"
#include "launcher/schedulers/scheduled.hpp"
#include "launcher/usage.hpp"

namespace ddprun {
namespace {

using Id = OptionId;

Result<void> check_backend(const Settings& settings) {
  const std::string& backend = settings.text(Id::kRdzvBackend);
  if (backend == "static" || backend == "c10d") return {};
  if (backend == "etcd" || backend == "etcd-v2") {
    return Error{ErrorKind::kUnsupported,
                 settings.shown(Id::kRdzvBackend) + " is not supported yet; c10d and static work"};
  }
  return usage(settings.named(Id::kRdzvBackend) + "='" + backend + "' is not one of static, c10d");
}

/// torchrun's rule since 2.12: a plain run on one node is standalone.
bool standalone_is_implied(const Settings& settings, const NodeRange& nodes) {
  return nodes.max == 1 && settings.text(Id::kRdzvBackend) == "static" &&
         settings.text(Id::kRdzvEndpoint).empty() && !settings.given(Id::kMasterPort);
}

Result<RendezvousPlan> choose(const RendezvousInput& input, const NodeRange& nodes) {
  const Settings& settings = input.settings;
  if (settings.on(Id::kStandalone) && nodes.max > 1) {
    return usage(settings.named(Id::kStandalone) + " is one node, but " +
                 settings.shown(Id::kNnodes) + " asks for more: drop one of the two");
  }
  if (settings.on(Id::kStandalone) || standalone_is_implied(settings, nodes)) {
    return standalone_node(input);
  }
  if (settings.text(Id::kRdzvBackend) == "c10d") return plan_c10d(input, nodes);
  return plan_static(input, nodes);
}

Result<RendezvousPlan> plan_scheduler(const RendezvousInput& input, const HostList& list) {
  if (list.own > 0) {
    const std::string& root = list.hosts.front().host;
    auto reachable =
        refuse_loopback_name(root, input.machine.locate(root), list.nodes, list.source);
    if (!reachable) return reachable.error();
  }
  return plan_host_list(list, RunId(input.settings.text(Id::kRdzvId)), input);
}

Result<RendezvousPlan> meet(const Scheduled& scheduled, const RendezvousInput& input,
                            const NodeRange& nodes) {
  if (!input.settings.text(Id::kHosts).empty()) return plan_hosts_option(input);
  if (scheduled.hosts) return plan_scheduler(input, *scheduled.hosts);
  return choose(input, nodes);
}

}  // namespace

Result<RendezvousPlan> plan_rendezvous(const Scheduled& scheduled, const Machine& machine) {
  const Settings& settings = scheduled.settings;
  auto nodes = parse_nodes(settings);
  if (!nodes) return nodes.error();
  auto backend = check_backend(settings);
  if (!backend) return backend.error();
  auto conf = read_rendezvous_conf(settings);
  if (!conf) return conf.error();
  auto plan = meet(scheduled, RendezvousInput{settings, machine, *conf}, *nodes);
  if (plan) plan->warnings = conf_warnings(*conf, settings);
  return plan;
}

}  // namespace ddprun
