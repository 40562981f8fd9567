#include "launcher/schedulers/placement.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/program_name.hpp"
#include "launcher/options/values.hpp"

namespace ddprun {
namespace {

/// The variables of one launcher.
struct MpiVariables {
  std::string size;
  std::string rank;
  std::string local_size;
};

/// With one task per node, rank and size are those of the nodes.
Result<Placement> read_ranks(const Environment& environment, const std::string& job,
                             const MpiVariables& names) {
  Placement placement;
  placement.job = job;
  const auto size = count_in(environment, names.size, kNodesMax);
  const auto rank = size ? count_in(environment, names.rank, *size - 1) : std::nullopt;
  if (!rank) {
    return invalid_variable(job, names.rank + "='" + value_or(environment, names.rank, "") +
                                     "' of " + names.size + "='" +
                                     value_or(environment, names.size, "") + "'");
  }
  placement.nodes = *size;
  placement.index = *rank;
  if (*size == 1) return placement;
  const auto local = count_in(environment, names.local_size, kNodesMax);
  if (!local) {
    return usage(job + " has " + std::to_string(*size) + " tasks, but " + names.local_size +
                 " does not say how many of them are on this node: start one on each node and "
                 "pass --nnodes and --rdzv-endpoint; " +
                 kStandaloneHere);
  }
  if (*local > 1) {
    return several_tasks(job, *local,
                         "(Open MPI: mpirun -N 1 " + program_name() +
                             " ..., MPICH: mpiexec -ppn 1 " + program_name() + " ...)");
  }
  return placement;
}

/// Letters that are safe in a path.
std::string path_safe(std::string name) {
  std::replace_if(
      name.begin(), name.end(),
      [](char c) {
        const bool word =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        return !word && c != '.' && c != '-' && c != '_';
      },
      '-');
  return name;
}

/// The index of this node's daemon: "1847459840.2;tcp://..." or "prterun-head-63@0.2;tcp4://...".
std::optional<int> own_daemon(const Environment& environment) {
  const std::string known = value_or(environment, "PMIX_SERVER_URI41", "");  // Open MPI 5
  const std::string text = value_or(environment, "OMPI_MCA_orte_local_daemon_uri", known);
  const std::string_view uri = std::string_view(text).substr(0, text.find(';'));
  const auto dot = uri.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const auto number = parse_digits(uri.substr(dot + 1));
  if (!number || *number > kHostlistMax) return std::nullopt;
  return static_cast<int>(*number);
}

/// The first address of "1847459840.0;tcp://192.0.2.2,10.0.0.2:44809;tcp6://...".
std::string address_of(const std::string& uri) {
  constexpr std::string_view kScheme = "tcp://";
  const auto start = uri.find(kScheme);
  if (start == std::string::npos) return "";
  const std::string rest = uri.substr(start + kScheme.size());
  return rest.substr(0, rest.find_first_of(",:;"));
}

/// The host of mpirun in "prterun-head-63@1", the job's name under Open MPI 5.
std::string host_in(const std::string& job) {
  constexpr std::string_view kPrefix = "prterun-";
  const std::string name = job.substr(0, job.find('@'));
  const auto dash = name.rfind('-');
  if (!name.starts_with(kPrefix) || dash == std::string::npos || dash < kPrefix.size()) return "";
  return name.substr(kPrefix.size(), dash - kPrefix.size());
}

/// The hosts by rank. Open MPI numbers its daemons in the order of the hosts, starting with mpirun
/// itself, and with one task per node also the tasks: daemon and rank differ by 0 if mpirun's own
/// host takes part, and by 1 if it does not. Any other difference means another order: no hosts.
void find_hosts(const Environment& environment, Placement& placement) {
  const auto daemon = own_daemon(environment);
  if (!daemon) return;
  if (*daemon < placement.index || *daemon - placement.index > 1) return;
  const auto before = static_cast<std::ptrdiff_t>(*daemon - placement.index);
  const std::string list =
      hostlist_of_node_regex(value_or(environment, "OMPI_MCA_orte_node_regex", ""));
  auto hosts = expand_hostlist(list);
  const auto wanted = before + placement.nodes;
  if (hosts && static_cast<std::ptrdiff_t>(hosts->size()) >= wanted) {
    placement.hosts.assign(hosts->begin() + before, hosts->begin() + wanted);
    placement.list = list;
    return;
  }
  // Open MPI 4 provides no list on mpirun's own host, and Open MPI 5 provides none at all.
  if (before != 0) return;
  std::string first = host_in(value_or(environment, "PMIX_NAMESPACE", ""));
  if (first.empty()) first = address_of(value_or(environment, "OMPI_MCA_orte_hnp_uri", ""));
  if (!first.empty()) placement.hosts = {first};
}

}  // namespace

std::uint16_t port_of_name(std::string_view name) {
  std::uint32_t hash = 2166136261U;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return static_cast<std::uint16_t>(kSchedulerPortFirst + hash % kSchedulerPortCount);
}

Result<std::optional<Placement>> openmpi_placement(const Environment& environment) {
  const MpiVariables names{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK",
                           "OMPI_COMM_WORLD_LOCAL_SIZE"};
  if (!environment.contains(names.size)) return std::optional<Placement>();
  const std::string id =
      value_or(environment, "PMIX_NAMESPACE", value_or(environment, "OMPI_MCA_ess_base_jobid", ""));
  auto placement = read_ranks(environment, id.empty() ? "mpirun" : "mpirun's job " + id, names);
  if (!placement) return placement.error();
  if (!id.empty()) placement->run_id = "mpi-" + path_safe(id);
  placement->port = port_of_name(placement->run_id);
  if (placement->nodes > 1) find_hosts(environment, *placement);
  return std::optional<Placement>(std::move(*placement));
}

bool is_started_by_hydra(const Environment& environment) {
  return environment.contains("MPI_LOCALNRANKS") && environment.contains("PMI_SIZE");
}

Result<std::optional<Placement>> pmi_placement(const Environment& environment) {
  MpiVariables names{"PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS"};
  if (!environment.contains(names.size)) return std::optional<Placement>();
  if (environment.contains("PMI_LOCAL_SIZE")) names.local_size = "PMI_LOCAL_SIZE";
  const std::string id = value_or(environment, "PMI_JOBID", "");
  auto placement = read_ranks(environment, id.empty() ? "mpiexec" : "mpiexec's job " + id, names);
  if (!placement) return placement.error();
  if (!id.empty()) placement->run_id = "mpi-" + path_safe(id);
  placement->port = port_of_name(placement->run_id);
  return std::optional<Placement>(std::move(*placement));
}

}  // namespace ddprun
