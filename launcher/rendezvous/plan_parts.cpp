#include "launcher/rendezvous/plan_parts.hpp"

#include "base/address.hpp"
#include "base/printable.hpp"
#include "launcher/limits.hpp"
#include "launcher/usage.hpp"

namespace ddprun {
namespace {

using Id = OptionId;

/// The literal of --local-addr, empty when it is not given.
Result<std::string> local_literal(const RendezvousInput& input, const NodeRange& nodes) {
  const std::string& host = input.settings.text(Id::kLocalAddr);
  if (host.empty()) return std::string();
  const std::string shown = input.settings.shown(Id::kLocalAddr);
  auto literal = input.machine.own_address(host);
  if (!literal) return usage(shown + ": " + literal.error().sentence);
  const Whereabouts found{Whereabouts::Place::kHere, *literal};
  auto reachable = refuse_loopback_name(host, found, nodes, shown);
  if (!reachable) return reachable.error();
  return *literal;
}

}  // namespace

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

void note_unused(RendezvousPlan& plan, const std::string& names, const std::string& why) {
  if (!names.empty()) plan.notes.push_back(names + " not used: " + why);
}

StoreHost shared_store(const Machine& machine) {
  const bool off =
      value_or(machine.environment(), "TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "0") == "1";
  return off ? StoreHost::kWorkerZero : StoreHost::kAgent;
}

Result<void> check_names_told(const RunId& run_id, const Settings& settings) {
  const std::string bound = " is longer than " + std::to_string(kNameBytesMax) +
                            " bytes, which other nodes cannot be told";
  if (run_id.value().empty()) return usage("an empty --rdzv-id cannot name a run of several nodes");
  if (printable(run_id.value()) != run_id.value()) {
    return usage(settings.named(Id::kRdzvId) + "='" + run_id.value() +
                 "' has control characters or is not UTF-8, so it cannot name a run of several "
                 "nodes");
  }
  if (run_id.value().size() > kNameBytesMax) return usage("the run id (--rdzv-id)" + bound);
  if (settings.text(Id::kRole).size() > kNameBytesMax) return usage("the name of --role" + bound);
  if (settings.integer(Id::kMaxRestarts) > kRestartsMax) {
    return usage(settings.shown(Id::kMaxRestarts) + " is more than " +
                 std::to_string(kRestartsMax));
  }
  return {};
}

Result<RendezvousPlan> plan_over_link(const RendezvousInput& input, const NodeRange& nodes,
                                      ConfUse use) {
  RendezvousPlan plan;
  plan.rendezvous.emplace();
  plan.rendezvous->nodes_min = nodes.min;
  plan.rendezvous->nodes_max = nodes.max;
  apply(input.conf, use, *plan.rendezvous);
  plan.notes = conf_notes(input.conf, use, input.settings);
  if (use == ConfUse::kStatic) return plan;
  auto address = local_literal(input, nodes);
  if (!address) return address.error();
  plan.rendezvous->address = *address;
  plan.store.listen_addr = *address;
  plan.store.host = shared_store(input.machine);
  return plan;
}

Result<void> refuse_loopback_name(const std::string& host, const Whereabouts& found,
                                  const NodeRange& nodes, const std::string& shown) {
  const bool here = found.place == Whereabouts::Place::kHere;
  if (nodes.max == 1 || !here || !is_loopback_literal(found.literal)) return {};
  if (named_loopback(host)) return {};
  return usage(shown + ": " + host + " means " + found.literal +
               " on this machine, where no other node can come, but the run has " + text_of(nodes) +
               "; give the address that the others reach instead of the name, or take " + host +
               " off the line of " + found.literal + " in /etc/hosts");
}

HostPlan host_plan(HostPlan::Need need, const std::string& host, std::uint16_t port) {
  return {need, named_loopback(host).value_or(""), port};
}

}  // namespace ddprun
