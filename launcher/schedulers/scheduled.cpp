#include "launcher/schedulers/scheduled.hpp"

#include <utility>

#include "base/count_text.hpp"
#include "launcher/rendezvous/nodes.hpp"
#include "launcher/schedulers/placement.hpp"
#include "launcher/usage.hpp"

namespace ddprun {
namespace {

using Id = OptionId;

void fill(Settings& settings, Id id, const std::string& value, const std::string& source) {
  if (!settings.given(id)) settings.supply(id, value, source);
}

/// The options say where the nodes meet.
bool has_address(const Settings& settings) {
  return settings.given(Id::kRdzvEndpoint) || settings.given(Id::kMasterAddr);
}

bool is_static(const Settings& settings) {
  return settings.text(Id::kRdzvBackend) == "static";
}

/// The options alone describe the run, on one node or on several.
bool says_all(const Settings& settings) {
  if (settings.on(Id::kStandalone) || !settings.text(Id::kHosts).empty()) return true;
  if (!settings.given(Id::kNnodes)) return false;
  const auto nodes = parse_nodes(settings);  // an error is reported by those who need the number
  return !nodes || nodes->max == 1 || has_address(settings);
}

Result<std::optional<Placement>> placement_of(const Machine& machine) {
  return find_placement(machine.environment(),
                        machine.is_in_shell() ? Parent::kShell : Parent::kScheduler);
}

/// torchrun takes every node for number 0 where a static run does not say; a scheduler knows
/// better.
void fill_place_only(Scheduled& scheduled, const Machine& machine) {
  Settings& settings = scheduled.settings;
  const auto nodes = parse_nodes(settings);
  if (!nodes || nodes->max == 1 || settings.on(Id::kStandalone)) return;
  if (!is_static(settings) || settings.given(Id::kNodeRank) || !has_address(settings)) return;
  const auto placement = placement_of(machine);
  if (!placement || !*placement || (*placement)->nodes != nodes->max) return;
  fill(settings, Id::kNodeRank, std::to_string((*placement)->index), (*placement)->job);
}

/// One worker for each GPU that the scheduler gave to this node.
void fill_workers(Scheduled& scheduled, const Placement& placement,
                  const Environment& environment) {
  if (scheduled.settings.given(Id::kNprocPerNode)) return;
  const auto gpus = allocated_gpus(environment);
  if (!gpus) return;
  fill(scheduled.settings, Id::kNprocPerNode, std::to_string(*gpus), placement.job);
  if (placement.index > 0) return;
  scheduled.notes.push_back(placement.job + ": " + count_text(*gpus, "worker") +
                            " on this node, one for each GPU it was given (--nproc-per-node)");
}

Result<void> check_against_options(const Settings& settings, const Placement& placement) {
  const std::string count = count_text(placement.nodes, "node");
  if (settings.given(Id::kNnodes)) {
    auto nodes = parse_nodes(settings);
    if (!nodes) return nodes.error();
    if (nodes->max != placement.nodes) {
      return usage(settings.shown(Id::kNnodes) + ", but " + placement.job + " has " + count +
                   ": drop --nnodes, or say with --rdzv-endpoint where other nodes meet");
    }
  }
  if (!settings.given(Id::kNodeRank) || has_address(settings)) return {};
  if (settings.integer(Id::kNodeRank) == placement.index) return {};
  return usage(settings.shown(Id::kNodeRank) + ", but this is node " +
               std::to_string(placement.index) + " of " + placement.job + ": drop --node-rank");
}

Error no_hosts(const Placement& placement) {
  return usage(placement.job + " has " + count_text(placement.nodes, "node") +
               ", but its variables do not list the hosts: pass --rdzv-backend=c10d and "
               "--rdzv-endpoint=HOST, the host that will run the coordinator; " +
               kStandaloneHere);
}

/// A static run, or one with an endpoint: the options' own rules, with numbers from the scheduler.
Result<void> fill_numbers(Scheduled& scheduled, const Placement& placement) {
  Settings& settings = scheduled.settings;
  fill(settings, Id::kNodeRank, std::to_string(placement.index), placement.job);
  if (has_address(settings)) return {};
  if (placement.hosts.empty()) return no_hosts(placement);
  fill(settings, Id::kMasterAddr, placement.hosts.front(), placement.job);
  fill(settings, Id::kMasterPort, std::to_string(placement.port), placement.job);
  return {};
}

/// Where nothing says how the nodes meet: at the first of the scheduler's list.
Result<void> fill_hosts(Scheduled& scheduled, const Placement& placement) {
  if (placement.hosts.empty()) return no_hosts(placement);
  auto nodes = parse_nodes(scheduled.settings);
  if (!nodes) return nodes.error();
  HostList list{{}, static_cast<std::size_t>(placement.index), *nodes, placement.job};
  for (const std::string& host : placement.hosts) list.hosts.push_back({host, std::nullopt});
  list.hosts.front().port = placement.port;
  list.hosts.resize(static_cast<std::size_t>(placement.nodes));  // only the first one matters
  if (placement.index == 0) {
    scheduled.notes.insert(scheduled.notes.begin(),
                           placement.job + ": " + text_of(*nodes) +
                               (placement.list.empty() ? "" : " (" + placement.list + ")") +
                               " meet at " + text_of(list.hosts.front()));
  }
  scheduled.hosts = std::move(list);
  return {};
}

Result<void> fill_in(Scheduled& scheduled, const Placement& placement,
                     const Environment& environment) {
  Settings& settings = scheduled.settings;
  fill_workers(scheduled, placement, environment);
  if (placement.nodes == 1) return {};
  auto agrees = check_against_options(settings, placement);
  if (!agrees) return agrees.error();
  fill(settings, Id::kNnodes, std::to_string(placement.nodes), placement.job);
  if (!placement.run_id.empty()) fill(settings, Id::kRdzvId, placement.run_id, placement.job);
  const bool wants_static = settings.given(Id::kRdzvBackend) && is_static(settings);
  if (has_address(settings) || wants_static || settings.given(Id::kMasterPort)) {
    return fill_numbers(scheduled, placement);
  }
  return fill_hosts(scheduled, placement);
}

/// A worker of another run inherited these variables; they are about the ddprun or torchrun above.
void note_outer_run(Scheduled& scheduled, const Machine& machine) {
  const auto placement = placement_of(machine);
  if (placement && (!*placement || (*placement)->nodes == 1)) return;
  scheduled.notes.push_back("this is a worker of run " +
                            value_or(machine.environment(), "TORCHELASTIC_RUN_ID", "") +
                            ", so the scheduler's variables are that run's and not used");
}

}  // namespace

Result<Scheduled> ask_scheduler(const Settings& settings, const Machine& machine) {
  Scheduled scheduled{settings, std::nullopt, {}};
  const bool in_worker = machine.environment().contains("TORCHELASTIC_RUN_ID");
  if (says_all(settings)) {
    if (!in_worker) fill_place_only(scheduled, machine);
    return scheduled;
  }
  if (in_worker) {
    note_outer_run(scheduled, machine);
    return scheduled;
  }
  auto placement = placement_of(machine);
  if (!placement) return placement.error();
  if (!*placement) return scheduled;
  auto filled = fill_in(scheduled, **placement, machine.environment());
  if (!filled) return filled.error();
  return scheduled;
}

}  // namespace ddprun
