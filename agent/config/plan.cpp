#include "agent/config/plan.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/assert.hpp"
#include "base/format.hpp"
#include "base/macros.hpp"
#include "base/printable.hpp"

namespace ddprun {

namespace {

// Every argument after the program itself knows one macro.
std::vector<std::string> worker_argv(const LaunchConfig& config, LocalRank local_rank) {
  DDPRUN_ASSERT(!config.workers.command.empty());
  std::vector<std::string> argv{config.workers.command.front()};
  for (std::size_t i = 1; i < config.workers.command.size(); ++i) {
    argv.push_back(substitute(config.workers.command[i],
                              {{"local_rank", std::to_string(local_rank.value())}}));
  }
  return argv;
}

// Below another ddprun its mark stays, for that one to find what this one leaves.
std::string marks_below(const Environment& inherited, const std::string& mark) {
  const std::string outer = value_or(inherited, "DDPRUN_WORKER", "");
  return (outer.empty() ? "" : outer + ",") + mark;
}

using Row = std::vector<std::string>;

std::string device_of(const WorkerConfig& workers, std::size_t local_rank) {
  const bool one_each = !workers.virtual_devices.empty();
  const auto& devices = one_each ? workers.virtual_devices : workers.gpus;
  if (local_rank >= devices.size()) return "";
  const std::string& name = devices[local_rank];
  const bool index = name.find_first_not_of("0123456789") == std::string::npos;
  return (index ? "GPU " : "") + printable(name);
}

bool has_the_same(const Placed& left, const Placed& right) {
  return left.device == right.device && left.cpus == right.cpus && left.threads == right.threads &&
         left.log == right.log;
}

/// Without the columns in which no worker has anything.
std::vector<Row> without_empty_columns(const std::vector<Row>& rows) {
  std::vector<Row> kept(rows.size());
  for (std::size_t column = 0; column < rows.front().size(); ++column) {
    const bool is_empty = std::all_of(rows.begin() + 1, rows.end(),
                                      [column](const Row& row) { return row[column].empty(); });
    for (std::size_t row = 0; !is_empty && row < rows.size(); ++row) {
      kept[row].push_back(rows[row][column]);
    }
  }
  return kept;
}

}  // namespace

std::optional<std::string> visible_devices_of_workers(const WorkerConfig& workers,
                                                      const Environment& inherited) {
  const auto found = inherited.find("CUDA_VISIBLE_DEVICES");
  std::optional<std::string> devices;
  if (found != inherited.end()) devices = found->second;
  if (workers.gpus.empty()) return devices;
  devices.emplace();
  for (const std::string& gpu : workers.gpus) *devices += (devices->empty() ? "" : ",") + gpu;
  return devices;
}

std::string worker_mark(const RoundFacts& facts, LocalRank local_rank) {
  return facts.nonce + "/" + std::to_string(facts.round.value()) + "/" +
         std::to_string(local_rank.value());
}

std::string spare_mark(const std::string& nonce, int spare) {
  return nonce + "/spare/" + std::to_string(spare);
}

WorkerPlan plan_worker(const LaunchConfig& config, const Environment& inherited,
                       const RoundFacts& facts, LocalRank local_rank,
                       const std::string& error_file) {
  const Rank rank(facts.first_rank.value() + local_rank.value());
  const std::string rank_text = std::to_string(rank.value());
  const std::string world_text = std::to_string(facts.world.value());
  Environment environment = inherited;
  const auto set = [&environment](const char* name, std::string value) {
    environment.insert_or_assign(name, std::move(value));
  };
  set("RANK", rank_text);
  set("WORLD_SIZE", world_text);
  set("LOCAL_RANK", std::to_string(local_rank.value()));
  set("LOCAL_WORLD_SIZE", std::to_string(config.workers.count));
  set("GROUP_RANK", std::to_string(facts.group_rank));
  set("GROUP_WORLD_SIZE", std::to_string(facts.groups));
  set("ROLE_RANK", std::to_string(facts.first_role_rank + local_rank.value()));
  set("ROLE_WORLD_SIZE", std::to_string(facts.role_world.value()));
  set("ROLE_NAME", config.workers.role);
  set("MASTER_ADDR", facts.master_addr);
  set("MASTER_PORT", std::to_string(facts.master_port));
  set("TORCHELASTIC_RESTART_COUNT", std::to_string(facts.restarts.value()));
  set("TORCHELASTIC_MAX_RESTARTS", std::to_string(config.stopping.max_restarts));
  set("TORCHELASTIC_RUN_ID", config.run_id.value());
  set("TORCHELASTIC_USE_AGENT_STORE", config.store.host == StoreHost::kAgent ? "True" : "False");
  set("TORCHELASTIC_ERROR_FILE", error_file);
  set("TORCHELASTIC_SIGNALS_TO_HANDLE", config.stopping.signals_text);
  set("DDPRUN_ROUND", std::to_string(facts.round.value()));
  set("DDPRUN_WORKER", marks_below(inherited, worker_mark(facts, local_rank)));
  environment.erase("DDPRUN_SPARE");  // of another ddprun
  environment.erase("DDPRUN_SURVIVORS");
  // Said of this run; CUDA_VISIBLE_DEVICES has the devices, and a path may be relative.
  for (const char* name : {"DDPRUN_GPUS", "DDPRUN_SHARE_GPUS", "DDPRUN_CONFIG"}) {
    environment.erase(name);
  }
  if (config.stopping.rejoin_timeout) set("DDPRUN_SURVIVORS", "1");
  if (facts.worker_socket.empty()) {
    environment.erase("DDPRUN_WORKER_SOCKET");  // of another ddprun, which knows other ranks
  } else {
    set("DDPRUN_WORKER_SOCKET", facts.worker_socket);
  }
  if (!facts.timer_pipe.empty()) set("TORCHELASTIC_TIMER_FILE", facts.timer_pipe);
  environment.emplace("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
  environment.emplace("PYTHONFAULTHANDLER", "1");  // a crash leaves its Python stack in stderr
  const auto at = static_cast<std::size_t>(local_rank.value());
  if (!config.workers.threads.empty()) {
    environment.emplace("OMP_NUM_THREADS", std::to_string(config.workers.threads.at(at)));
  }
  if (const auto devices = visible_devices_of_workers(config.workers, inherited)) {
    set("CUDA_VISIBLE_DEVICES", *devices);
  }
  if (!config.workers.virtual_devices.empty()) {
    set("DDPRUN_LOCAL_RANK", std::to_string(local_rank.value()));
    set("LOCAL_RANK", "0");
    const auto& device = config.workers.virtual_devices.at(at);
    set("CUDA_VISIBLE_DEVICES", device);
    if (!value_or(inherited, "HIP_VISIBLE_DEVICES", "").empty()) set("HIP_VISIBLE_DEVICES", device);
  }
  return {rank, local_rank, worker_argv(config, local_rank), std::move(environment)};
}

WorkerPlan plan_spare(const LaunchConfig& config, const Environment& inherited,
                      const RoundFacts& facts, int spare, const std::string& error_file) {
  static constexpr std::array<const char*, 11> kOfPlaces{"RANK",
                                                         "LOCAL_RANK",
                                                         "GROUP_RANK",
                                                         "ROLE_RANK",
                                                         "WORLD_SIZE",
                                                         "GROUP_WORLD_SIZE",
                                                         "ROLE_WORLD_SIZE",
                                                         "MASTER_ADDR",
                                                         "MASTER_PORT",
                                                         "DDPRUN_ROUND",
                                                         "TORCHELASTIC_RESTART_COUNT"};
  WorkerPlan plan = plan_worker(config, inherited, facts, LocalRank(0), error_file);
  for (const char* name : kOfPlaces) plan.environment.erase(name);
  plan.environment.insert_or_assign("DDPRUN_WORKER",
                                    marks_below(inherited, spare_mark(facts.nonce, spare)));
  plan.environment.insert_or_assign("DDPRUN_SPARE", std::to_string(spare));
  return plan;
}

Environment round_variables(const WorkerPlan& plan) {
  static constexpr std::array<const char*, 16> kNames{"RANK",
                                                      "WORLD_SIZE",
                                                      "LOCAL_RANK",
                                                      "LOCAL_WORLD_SIZE",
                                                      "GROUP_RANK",
                                                      "GROUP_WORLD_SIZE",
                                                      "ROLE_RANK",
                                                      "ROLE_WORLD_SIZE",
                                                      "ROLE_NAME",
                                                      "MASTER_ADDR",
                                                      "MASTER_PORT",
                                                      "TORCHELASTIC_RESTART_COUNT",
                                                      "TORCHELASTIC_MAX_RESTARTS",
                                                      "TORCHELASTIC_RUN_ID",
                                                      "TORCHELASTIC_USE_AGENT_STORE",
                                                      "DDPRUN_ROUND"};
  Environment variables;
  for (const char* name : kNames) variables.emplace(name, value_or(plan.environment, name, ""));
  return variables;
}

std::string range_text(int first, int last) {
  return std::to_string(first) + (first == last ? "" : "-" + std::to_string(last));
}

std::string ranges_text(const std::set<int>& numbers) {
  std::string text;
  for (auto at = numbers.begin(); at != numbers.end();) {
    const int first = *at;
    int last = first;
    while (++at != numbers.end() && *at == last + 1) last = *at;
    text += (text.empty() ? "" : ",") + range_text(first, last);
  }
  return text;
}

Placed placed(const LaunchConfig& config, const WorkerPlan& plan, std::string log) {
  const auto local_rank = static_cast<std::size_t>(plan.local_rank.value());
  const auto& bound = config.workers.cpus;
  return {plan.rank, device_of(config.workers, local_rank),
          bound.empty() ? "" : ranges_text(bound.at(local_rank)),
          printable(value_or(plan.environment, "OMP_NUM_THREADS", "")), std::move(log)};
}

std::string placement_table(const std::string& host, const std::vector<Placed>& workers) {
  std::vector<Row> rows{{"rank", "host", "device", "CPUs", "threads", "log"}};
  std::size_t shown = 0;
  while (shown < workers.size() && rows.size() <= kPlacementLinesMax) {
    const Placed& first = workers[shown];
    std::size_t end = shown + 1;
    while (end < workers.size() && has_the_same(first, workers[end])) ++end;
    rows.push_back({range_text(first.rank.value(), workers[end - 1].rank.value()), printable(host),
                    first.device, first.cpus, first.threads, printable(first.log)});
    shown = end;
  }
  const std::vector<Row> table = without_empty_columns(rows);
  if (table.front().size() <= 2) return "";
  std::string text = in_columns(table);
  text.pop_back();  // the end of its last line
  if (shown == workers.size()) return text;
  return text + "\n(" + count_text(static_cast<long long>(workers.size() - shown), "rank") +
         " more)";
}

}  // namespace ddprun
