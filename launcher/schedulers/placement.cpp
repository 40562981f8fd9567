#include "launcher/schedulers/placement.hpp"

#include <algorithm>
#include <utility>

#include "base/format.hpp"
#include "base/program_name.hpp"
#include "launcher/options/values.hpp"

namespace ddprun {

namespace {

using Notes = std::vector<std::string>;

/// The options give the address of the rendezvous.
bool has_address(const RendezvousRequest& asked) {
  const bool endpoint = precedes_scheduler(asked.endpoint) && !asked.endpoint.text.empty();
  return endpoint || precedes_scheduler(asked.master_addr);
}

/// The options alone describe the run, on one node or on several.
bool is_complete(const RendezvousRequest& asked) {
  if (precedes_scheduler(asked.standalone)) return true;
  if (precedes_scheduler(asked.hosts) && !asked.hosts.value.empty()) return true;
  const bool counted = precedes_scheduler(asked.nodes);
  return counted && (asked.nodes.value.max == 1 || has_address(asked));
}

Result<std::optional<Placement>> placement_of(const Machine& machine) {
  return find_placement(machine.environment(),
                        machine.is_in_shell() ? Parent::kShell : Parent::kScheduler);
}

/// In place of the default or of a file's value, which costs a note.
template <class Value>
void take_over(Setting<Value>& setting, Value value, std::string text, const Placement& placement,
               Notes& notes) {
  if (setting.given && setting.source == Source::kFile && placement.index == 0) {
    notes.push_back(left_out_note(setting, placement.job));
  }
  supply(setting, std::move(value), std::move(text), placement.job);
}

void supply_index(RendezvousRequest& asked, const Placement& placement, Notes& notes) {
  take_over<std::int64_t>(asked.node_rank, placement.index, std::to_string(placement.index),
                          placement, notes);
}

/// Without --node-rank torchrun gives every node of a static run the rank 0; a scheduler knows the
/// ranks.
void fill_index_only(RendezvousRequest& asked, const Machine& machine, Notes& notes) {
  const int nodes = asked.nodes.value.max;
  if (nodes == 1 || asked.standalone.value || !has_address(asked)) return;
  if (asked.backend.value != Backend::kStatic || precedes_scheduler(asked.node_rank)) return;
  const auto placement = placement_of(machine);
  if (!placement || !*placement || (*placement)->nodes != nodes) return;
  supply_index(asked, **placement, notes);
}

/// One worker for each GPU that the scheduler gave to this node.
Result<void> fill_worker_count(Request& request, const Placement& placement,
                               const Environment& environment, Notes& notes) {
  Setting<WorkerCount>& count = request.workers.count;
  if (precedes_scheduler(count) || request.workers.gpus.value) return {};
  const auto gpus = allocated_gpus(environment);
  if (!gpus) return {};
  take_over(count, {}, std::to_string(*gpus), placement, notes);
  auto parsed = parse_worker_count(count);
  if (!parsed) return parsed.error();
  count.value = *parsed;
  if (placement.index > 0) return {};
  notes.push_back(placement.job + ": " + count_text(*gpus, "worker") +
                  " on this node, one for each GPU it was given (--nproc-per-node)");
  return {};
}

Result<void> check_against_options(const RendezvousRequest& asked, const Placement& placement) {
  if (precedes_scheduler(asked.nodes) && asked.nodes.value.max != placement.nodes) {
    return usage(asked.nodes.shown() + ", but " + placement.job + " has " +
                 count_text(placement.nodes, "node") +
                 ": drop --nnodes, or pass the --rdzv-endpoint of all nodes");
  }
  if (!precedes_scheduler(asked.node_rank) || has_address(asked)) return {};
  if (asked.node_rank.value == placement.index) return {};
  return usage(asked.node_rank.shown() + ", but this is node " + std::to_string(placement.index) +
               " of " + placement.job + ": drop --node-rank");
}

Error no_hosts(const Placement& placement) {
  return usage(placement.job + " has " + count_text(placement.nodes, "node") +
               ", but its variables do not list the hosts: pass --rdzv-backend=c10d and "
               "--rdzv-endpoint=HOST, the host that will run the coordinator; " +
               kStandaloneHere);
}

/// A static run, or one with an endpoint: the options' own rules, with numbers from the scheduler.
Result<void> fill_numbers(RendezvousRequest& asked, const Placement& placement, Notes& notes) {
  supply_index(asked, placement, notes);
  if (has_address(asked)) return {};
  if (placement.hosts.empty()) return no_hosts(placement);
  const std::string& first = placement.hosts.front();
  supply(asked.master_addr, first, first, placement.job);
  supply<std::int64_t>(asked.master_port, placement.port, std::to_string(placement.port),
                       placement.job);
  return {};
}

/// Unless an option names the rendezvous, it is at the first host of the scheduler's list.
Result<void> fill_hosts(RendezvousRequest& asked, const Placement& placement, Notes& notes) {
  if (placement.hosts.empty()) return no_hosts(placement);
  HostList list{{}, static_cast<std::size_t>(placement.index), asked.nodes.value, placement.job};
  for (const std::string& host : placement.hosts) list.hosts.push_back({host, std::nullopt});
  list.hosts.front().port = placement.port;
  list.hosts.resize(static_cast<std::size_t>(placement.nodes));  // only the first one matters
  if (placement.index == 0) {
    notes.insert(notes.begin(), placement.job + ": " + text_of(list.nodes) +
                                    (placement.list.empty() ? "" : " (" + placement.list + ")") +
                                    " rendezvous at " + text_of(list.hosts.front()));
  }
  asked.scheduler_hosts = std::move(list);
  return {};
}

Result<void> fill_placement(Request& request, const Placement& placement,
                            const Environment& environment, Notes& notes) {
  auto counted = fill_worker_count(request, placement, environment, notes);
  if (!counted || placement.nodes == 1) return counted;
  RendezvousRequest& asked = request.rendezvous;
  if (auto agrees = check_against_options(asked, placement); !agrees) return agrees;
  const int nodes = placement.nodes;
  supply(asked.nodes, NodeRange{nodes, nodes}, std::to_string(nodes), placement.job);
  if (!placement.run_id.empty()) {
    take_over(asked.run_id, placement.run_id, placement.run_id, placement, notes);
  }
  const bool wants_static = asked.backend.given && asked.backend.value == Backend::kStatic;
  if (has_address(asked) || wants_static || asked.master_port.given) {
    return fill_numbers(asked, placement, notes);
  }
  return fill_hosts(asked, placement, notes);
}

bool is_in_worker(const Machine& machine) {
  return machine.environment().contains("TORCHELASTIC_RUN_ID");
}

/// A worker of another run inherited these variables; they are about the ddprun or torchrun above.
Notes outer_run_note(const Machine& machine) {
  const auto placement = placement_of(machine);
  if (placement && (!*placement || (*placement)->nodes == 1)) return {};
  return {"this is a worker of run " + value_or(machine.environment(), "TORCHELASTIC_RUN_ID", "") +
          ", so the scheduler's variables are that run's and not used"};
}

/// For an mpirun inside Slurm: its variables identify the task, and Slurm's list the hosts and the
/// job if mpirun does not. Its tasks are in the order of Slurm's list.
void fill_in_from_slurm(const Environment& environment, Placement& placement) {
  const std::string list = value_or(environment, "SLURM_JOB_NODELIST", "");
  if (list.empty()) return;
  if (placement.run_id.empty()) {
    // Not the step: the first node's daemon may not belong to one.
    placement.run_id = "mpi-" + value_or(environment, "SLURM_JOB_ID", "");
    placement.port = port_of_name(placement.run_id);
  }
  if (!placement.hosts.empty()) return;
  auto hosts = expand_hostlist(list);
  if (!hosts || hosts->size() != static_cast<std::size_t>(placement.nodes)) return;
  placement.hosts = std::move(*hosts);
  placement.list = list;
}

Result<std::optional<Placement>> mpi_placement(const Environment& environment) {
  if (environment.contains("OMPI_COMM_WORLD_SIZE")) return openmpi_placement(environment);
  if (is_started_by_hydra(environment)) return pmi_placement(environment);
  return std::optional<Placement>();
}

}  // namespace

Result<Notes> leave_out_nodes(Settings& settings, const RendezvousRequest& asked,
                              const Machine& machine) {
  Notes notes;
  if (is_complete(asked) || is_in_worker(machine)) return notes;
  auto placement = placement_of(machine);
  if (!placement) return placement.error();
  if (!*placement || (*placement)->nodes == 1) return notes;
  for (const OptionSpec& option : all_options()) {
    if (!option.of_scheduler) continue;
    auto note = settings.leave_out(option.id, (*placement)->job);
    if (note && (*placement)->index == 0) notes.push_back(std::move(*note));
  }
  return notes;
}

Result<Notes> fill_from_scheduler(Request& request, const Machine& machine) {
  Notes notes;
  if (is_complete(request.rendezvous)) {
    if (!is_in_worker(machine)) fill_index_only(request.rendezvous, machine, notes);
    return notes;
  }
  if (is_in_worker(machine)) return outer_run_note(machine);
  auto placement = placement_of(machine);
  if (!placement) return placement.error();
  if (!*placement) return notes;
  auto filled = fill_placement(request, **placement, machine.environment(), notes);
  if (!filled) return filled.error();
  return notes;
}

Error invalid_variable(const std::string& job, const std::string& variable) {
  return usage(job + ": " + variable +
               " is invalid, so the nodes cannot be discovered automatically: pass --nnodes, "
               "--node-rank and --rdzv-endpoint; " +
               kStandaloneHere);
}

Result<std::optional<Placement>> find_placement(const Environment& environment, Parent parent) {
  // mpirun uses srun to start its daemons, so its variables describe this task and Slurm's the
  // daemon. The variables of a single task may also be inherited from an outer shell: then Slurm's
  // count.
  auto placement = mpi_placement(environment);
  if (!placement) return placement;
  if (*placement && (*placement)->nodes > 1) {
    fill_in_from_slurm(environment, **placement);
    return placement;
  }
  auto slurm = slurm_placement(environment, parent);
  if (!slurm || *slurm) return slurm;
  if (*placement) return placement;
  return pmi_placement(environment);
}

Error several_tasks(const std::string& job, int tasks, const std::string& remedy) {
  return usage(job + " starts " + program_name() + " " + std::to_string(tasks) +
               " times on a node, and each would start its own workers on the same GPUs: start "
               "one on each node " +
               remedy + ", and set the number of workers per node with --nproc-per-node; " +
               kStandaloneHere);
}

std::optional<int> count_in(const Environment& environment, const std::string& variable, int most) {
  const auto number = parse_digits(value_or(environment, variable, ""));
  if (!number || most < 0 || *number > static_cast<std::uint64_t>(most)) return std::nullopt;
  return static_cast<int>(*number);
}

std::optional<int> allocated_gpus(const Environment& environment) {
  const bool given =
      environment.contains("SLURM_GPUS_ON_NODE") || environment.contains("SLURM_STEP_GPUS");
  if (!given) return std::nullopt;
  const auto visible = environment.find("CUDA_VISIBLE_DEVICES");
  if (visible != environment.end()) {
    const std::string& list = visible->second;
    if (list.empty() || list == "NoDevFiles") return std::nullopt;
    return static_cast<int>(1 + std::count(list.begin(), list.end(), ','));
  }
  const auto count = count_in(environment, "SLURM_GPUS_ON_NODE", kNodesMax).value_or(0);
  return count > 0 ? std::optional<int>(count) : std::nullopt;
}

}  // namespace ddprun
