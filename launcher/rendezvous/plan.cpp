#include "launcher/rendezvous/plan.hpp"

#include "launcher/rendezvous/backends.hpp"
#include "launcher/usage.hpp"

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
  if (asked.scheduler_hosts) return plan_listed_hosts(*asked.scheduler_hosts, request, machine);
  if (asked.standalone.value && asked.nodes.value.max > 1) {
    return usage(asked.standalone.name + " is one node, but " + asked.nodes.shown() +
                 " asks for more: drop one of the two");
  }
  if (asked.standalone.value || standalone_is_implied(asked)) {
    return plan_standalone(request, machine);
  }
  if (asked.backend.value == Backend::kC10d) return plan_c10d(request, machine);
  return plan_static(request, machine);
}

}  // namespace

Result<RendezvousPlan> plan_rendezvous(const Request& request, const Machine& machine) {
  auto plan = choose_plan(request, machine);
  if (plan) plan->warnings = conf_warnings(request.rendezvous.conf);
  return plan;
}

}  // namespace ddprun
