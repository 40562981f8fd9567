#include "agent/coordinate/preview.hpp"

#include <array>
#include <utility>

#include "agent/config/plan.hpp"
#include "agent/coordinate/link_messages.hpp"
#include "agent/output/log_tree.hpp"
#include "rendezvous/round/ranks.hpp"

namespace ddprun {

namespace {

bool has_logs(const LaunchConfig& config) {
  return config.log.dir != "/dev/null";
}

/// The first round, as far as it is known before the rendezvous.
struct FirstRound {
  std::vector<round::Placement> places;  // of MIN nodes, with as many workers each as this one
  std::optional<int> own;                // this node's place; unset: decided at the rendezvous
  bool fixed_size = true;
};

FirstRound first_round(const LaunchConfig& config) {
  FirstRound first;
  int nodes = 1;
  first.own = 0;
  if (config.rendezvous) {
    nodes = config.rendezvous->nodes_min;
    first.fixed_size = nodes == config.rendezvous->nodes_max;
    if (nodes > 1) first.own = config.rendezvous->node_rank;
    if (!first.fixed_size) first.own = std::nullopt;
  }
  const round::Slot slot{config.workers.count, config.workers.role};
  first.places = round::assign_ranks(std::vector(static_cast<std::size_t>(nodes), slot));
  return first;
}

RoundFacts facts_of(const FirstRound& first, const LaunchConfig& config) {
  const round::Placement& place = first.places.at(static_cast<std::size_t>(first.own.value_or(0)));
  protocol::StartRound start;
  start.stamp.number = Round(1);
  start.group_rank = place.group_rank;
  start.group_size = place.group_size;
  start.rank_base = place.rank_base;
  start.world_size = place.world_size;
  start.role_rank_base = place.role_rank_base;
  start.role_world_size = place.role_world_size;
  start.master_port = config.store.master_port;
  return facts_of(start, config);
}

/// The variables whose values are known only when the workers are started.
std::vector<const char*> undecided(const LaunchConfig& config, const FirstRound& first,
                                   bool run_id_is_new) {
  std::vector<const char*> names{"DDPRUN_WORKER", "DDPRUN_WORKER_SOCKET"};
  const auto add = [&names](bool wanted, std::initializer_list<const char*> more) {
    if (wanted) names.insert(names.end(), more);
  };
  const bool by_round = config.rendezvous && config.rendezvous->master == MasterChoice::kRound;
  add(has_logs(config), {"TORCHELASTIC_ERROR_FILE"});
  add(run_id_is_new, {"TORCHELASTIC_RUN_ID"});
  add(by_round, {"MASTER_ADDR"});
  add(by_round || config.store.master_port == 0, {"MASTER_PORT"});
  add(!first.own, {"RANK", "GROUP_RANK", "ROLE_RANK"});
  add(!first.fixed_size, {"WORLD_SIZE", "GROUP_WORLD_SIZE", "ROLE_WORLD_SIZE"});
  return names;
}

std::optional<std::string> devices_in(const Environment& environment) {
  for (const char* name : {"HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"}) {
    const auto found = environment.find(name);
    if (found != environment.end()) return found->second;
  }
  return std::nullopt;
}

}  // namespace

Preview preview(const LaunchConfig& config, const Environment& environment,
                const PreviewFacts& facts) {
  Preview shown;
  if (!facts.run_id_is_new) shown.run_id = config.run_id.value();
  shown.host = facts.host;
  shown.may_run_coordinator = facts.may_run_coordinator;
  if (config.rendezvous) {
    shown.nodes_min = config.rendezvous->nodes_min;
    shown.nodes_max = config.rendezvous->nodes_max;
    const std::optional<EtcdConfig>& etcd = config.rendezvous->etcd;
    if (etcd) shown.may_run_coordinator = etcd->may_lead;
    shown.coordinator_is_open = facts.coordinator_is_open || etcd;
    if (!shown.coordinator_is_open) shown.coordinator = coordinator_text(*config.rendezvous);
  }
  const LogTreeOptions logs{config.log.dir, value_or(environment, "TMPDIR", ""), config.run_id};
  if (has_logs(config)) shown.log_place = logs.place();
  const FirstRound first = first_round(config);
  const RoundFacts round = facts_of(first, config);
  for (const round::Placement& place : first.places) {
    if (!first.own) break;
    const bool here = place.group_rank == *first.own;
    const auto index = static_cast<std::size_t>(place.group_rank);
    const bool fixed = config.rendezvous && config.rendezvous->master == MasterChoice::kFixed;
    std::string listed = index == 0 && fixed ? config.store.master_addr : "";
    if (index < facts.hosts.size()) listed = facts.hosts[index];
    shown.nodes.push_back({place.group_rank, here ? facts.host : listed, place.rank_base.value(),
                           config.workers.count, here});
  }
  const auto later = undecided(config, first, facts.run_id_is_new);
  for (int i = 0; i < config.workers.count; ++i) {
    const LocalRank rank(i);
    const WorkerPlan set_alone = plan_worker(config, {}, round, rank, "");
    WorkerPlan plan = plan_worker(config, environment, round, rank, "");
    PreviewWorker worker{rank, std::nullopt, std::move(plan.argv), devices_in(plan.environment), {},
                         {}};
    if (first.own) worker.rank = plan.rank;
    if (!config.workers.cpus.empty()) {
      worker.cpus = config.workers.cpus.at(static_cast<std::size_t>(i));
    }
    for (auto& [name, value] : plan.environment) {
      const auto before = environment.find(name);
      const bool same = before != environment.end() && before->second == value;
      if (!same || set_alone.environment.contains(name)) worker.environment[name] = value;
    }
    for (const char* name : later) worker.environment[name] = std::nullopt;
    shown.workers.push_back(std::move(worker));
  }
  return shown;
}

}  // namespace ddprun
