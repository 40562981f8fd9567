#include <sys/stat.h>

#include <fstream>
#include <iterator>

#include "base/address.hpp"
#include "base/private_file.hpp"
#include "launcher/options/values.hpp"
#include "launcher/rendezvous/plan.hpp"

namespace ddprun {

namespace {

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

}  // namespace

Result<RendezvousPlan> plan_etcd(const Request& request, const Machine& machine) {
  const RendezvousRequest& asked = request.rendezvous;
  auto usable = check_etcd(asked);
  if (!usable) return usable.error();
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
