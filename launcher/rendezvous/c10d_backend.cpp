#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "base/address.hpp"
#include "base/limits.hpp"
#include "base/printable.hpp"
#include "launcher/options/values.hpp"
#include "launcher/rendezvous/plan.hpp"
#include "launcher/request/request.hpp"

namespace ddprun {

namespace {

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

}  // namespace

void note_static_options(RendezvousPlan& plan, const RendezvousRequest& asked) {
  note_unused(plan, given_names({&asked.master_addr, &asked.master_port}),
              "they belong to the static backend");
}

Result<std::optional<int>> elastic_node_rank(const RendezvousRequest& asked) {
  const Setting<std::int64_t>& rank = asked.node_rank;
  if (!rank.given) return std::optional<int>();
  if (rank.value < 0) return usage(rank.shown() + " is not a node rank");
  if (rank.value >= asked.nodes.value.max) return std::optional<int>();
  return std::optional(static_cast<int>(rank.value));
}

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

namespace {

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

}  // namespace

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

}  // namespace ddprun
