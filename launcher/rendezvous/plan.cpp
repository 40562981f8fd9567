#include "launcher/rendezvous/plan.hpp"

#include <algorithm>
#include <iterator>

#include "launcher/home_secret.hpp"
#include "launcher/options/values.hpp"
#include "launcher/rendezvous/backends.hpp"
#include "launcher/rendezvous/several_nodes.hpp"

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

}  // namespace ddprun
