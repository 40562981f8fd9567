#include "launcher/rendezvous/host_list.hpp"

#include "base/assert.hpp"
#include "launcher/rendezvous/plan_parts.hpp"
#include "launcher/rendezvous/single_node.hpp"

namespace ddprun {
namespace {

using Host = RendezvousConf::Host;

constexpr const char* kLoopback = "127.0.0.1";

}  // namespace

Result<RendezvousPlan> plan_host_list(const HostList& list, const RunId& run_id,
                                      const RendezvousInput& input) {
  DDPRUN_ASSERT(list.own < list.hosts.size());
  DDPRUN_ASSERT(list.nodes.max == static_cast<int>(list.hosts.size()));
  if (list.nodes.max == 1) return single_node(input, run_id);
  const Endpoint& root = list.hosts.front();
  const std::uint16_t port = root.port.value_or(kElasticPort);
  if (port == 0) {
    return Error{ErrorKind::kUsage, list.source + ": port 0 of " + text_of(root) +
                                        " lets the kernel choose, and other nodes would not "
                                        "know it"};
  }
  auto told = check_names_told(run_id, input.settings);
  if (!told) return told.error();
  auto plan = plan_over_link(input, list.nodes, ConfUse::kElastic);
  if (!plan) return plan;
  plan->run_id = run_id;
  RendezvousConfig& rendezvous = *plan->rendezvous;
  rendezvous.coordinator = {root.host, port};
  rendezvous.node_rank = static_cast<int>(list.own);
  rendezvous.scheduler_index = static_cast<int>(list.own);
  const bool against = input.conf.is_host == (list.own == 0 ? Host::kNo : Host::kYes);
  note_unused(*plan, against ? input.settings.named(OptionId::kRdzvConf) + " is_host" : "",
              "the first of " + list.source + " is the host");
  const auto loopback = named_loopback(root.host);
  if (plan->store.listen_addr.empty() && loopback) plan->store.listen_addr = *loopback;
  if (list.own == 0) {
    plan->host = host_plan(HostPlan::Need::kMust, root.host, port);
    // The host reaches itself whatever its own name means here: 127.0.1.1 does no harm.
    rendezvous.coordinator.host = loopback.value_or(kLoopback);
  }
  return plan;
}

}  // namespace ddprun
