#include "launcher/rendezvous/plan.hpp"

#include "launcher/rendezvous/backends.hpp"
#include "launcher/rendezvous/several_nodes.hpp"
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
  if (asked.backend.value == Backend::kEtcd) return plan_etcd(request, machine);
  return plan_static(request, machine);
}

/// --rdzv-secret-file precedes DDPRUN_SECRET, as an option precedes its variable. An empty one was
/// meant to be a secret, so it is not taken for none.
Result<void> take_secret(RendezvousPlan& plan, const RendezvousRequest& asked,
                         const Machine& machine) {
  const Setting<std::string>& file = asked.secret_file;
  if (!plan.rendezvous) {
    note_unused(plan, file.given ? file.shown() : "", "a single node has no link to protect");
    return {};
  }
  if (file.given) {
    if (file.value.empty()) return usage(file.quoted() + " names no file");
    auto secret = machine.secret_in(file.value, file.shown());
    if (!secret) return secret.error();
    plan.rendezvous->secret = std::move(*secret);
    return {};
  }
  auto secret = machine.secret_of_variable();
  if (!secret) return secret.error();
  plan.rendezvous->secret = std::move(*secret);
  if (plan.rendezvous->secret == nullptr) return {};
  return check_secret(*plan.rendezvous->secret, kSecretVariable);
}

}  // namespace

Result<RendezvousPlan> plan_rendezvous(const Request& request, const Machine& machine) {
  auto plan = choose_plan(request, machine);
  if (!plan) return plan;
  auto secret = take_secret(*plan, request.rendezvous, machine);
  if (!secret) return secret.error();
  const Setting<coordinator::StatusAccess>& status = request.rendezvous.status;
  note_unused(*plan, status.given && !plan->rendezvous ? status.shown() : "",
              "a single node runs no coordinator");
  plan->store.open = request.rendezvous.store_open;
  plan->warnings = conf_warnings(request.rendezvous.conf);
  return plan;
}

}  // namespace ddprun
