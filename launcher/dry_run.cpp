#include "launcher/dry_run.hpp"

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <set>
#include <vector>

#include "agent/config/plan.hpp"
#include "agent/proc/program.hpp"
#include "agent/proc/spawn.hpp"
#include "agent/report/lines.hpp"
#include "base/address.hpp"
#include "base/format.hpp"
#include "base/macros.hpp"
#include "base/printable.hpp"
#include "launcher/workers/config.hpp"

namespace ddprun {

namespace {

namespace json = boost::json;

constexpr const char* kLater = "(decided at the start)";

/// As a shell would read it.
std::string command_text(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
             std::string_view("-_./=:,@%+").find(c) != std::string_view::npos;
    });
    std::string quoted = "'";
    for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    text += (text.empty() ? "" : " ") + (plain ? word : quoted + "'");
  }
  return printable(text);
}

std::string assignment(const std::string& name, const std::optional<std::string>& value) {
  return printable(name + "=" + value.value_or(kLater));
}

bool is_same_everywhere(const Preview& preview, const std::string& name) {
  const auto& first = preview.workers.front().environment;
  return std::all_of(preview.workers.begin(), preview.workers.end(),
                     [&](const PreviewWorker& worker) {
                       const auto found = worker.environment.find(name);
                       return found != worker.environment.end() && found->second == first.at(name);
                     });
}

/// None: decided at the start, or a single node.
std::optional<std::string> coordinator_text(const Preview& preview) {
  if (!preview.coordinator) return std::nullopt;
  return printable(*preview.coordinator);
}

std::string heading_text(const Preview& preview) {
  std::vector<std::vector<std::string>> rows;
  rows.push_back({"run", printable(preview.run_id.value_or("(a new id at the start)"))});
  const auto workers = static_cast<long long>(preview.workers.size());
  rows.push_back({"nodes", count_text(preview.nodes_min, preview.nodes_max, "node") + "; this is " +
                               printable(preview.host) + " with " + count_text(workers, "worker")});
  if (preview.coordinator || preview.coordinator_is_open) {
    rows.push_back(
        {"coordinator", coordinator_text(preview).value_or(kLater) +
                            (preview.may_run_coordinator ? " (this node may run it)" : "")});
  }
  rows.push_back(
      {"logs", preview.log_place.empty() ? "none" : "below " + printable(preview.log_place)});
  return in_columns(rows);
}

std::string nodes_text(const Preview& preview) {
  if (preview.nodes_max == 1) return "";
  if (preview.nodes.empty()) return "\nThe ranks of the nodes are decided at the rendezvous.\n";
  std::vector<std::vector<std::string>> rows{{"node", "host", "ranks"}};
  for (const PreviewNode& node : preview.nodes) {
    rows.push_back({std::to_string(node.group_rank), node.host.empty() ? "?" : printable(node.host),
                    range_text(node.first_rank, node.first_rank + node.workers - 1) +
                        (node.here ? ", this node" : "")});
  }
  return "\nIf every node has as many workers as this one:\n" + in_columns(rows);
}

std::string workers_text(const Preview& preview) {
  std::vector<std::vector<std::string>> rows{{"rank", "local rank", "devices", "CPUs", "command"}};
  for (const PreviewWorker& worker : preview.workers) {
    rows.push_back({worker.rank ? std::to_string(worker.rank->value()) : "?",
                    std::to_string(worker.local_rank.value()),
                    printable(worker.devices.value_or("all")),
                    worker.cpus.empty() ? "all" : ranges_text(worker.cpus),
                    command_text(shown_command(worker.argv))});
  }
  return "\n" + in_columns(rows);
}

std::string environment_text(const Preview& preview) {
  std::string text = "\nEnvironment of every worker, besides what it inherits:\n";
  for (const auto& [name, value] : preview.workers.front().environment) {
    if (is_same_everywhere(preview, name)) text += "  " + assignment(name, value) + "\n";
  }
  for (const PreviewWorker& worker : preview.workers) {
    std::string own;
    for (const auto& [name, value] : worker.environment) {
      if (!is_same_everywhere(preview, name)) own += " " + assignment(name, value);
    }
    if (own.empty()) continue;
    text += "  local rank " + std::to_string(worker.local_rank.value()) + ":" + own + "\n";
  }
  return text;
}

std::string clean(const std::string& text) {
  return clean_utf8(text, text.size() * kReplacement.size());
}

json::value or_null(const std::optional<std::string>& text) {
  return text ? json::value(clean(*text)) : json::value(nullptr);
}

json::object worker_json(const PreviewWorker& worker) {
  json::object object;
  object["local_rank"] = worker.local_rank.value();
  object["rank"] = worker.rank ? json::value(worker.rank->value()) : json::value(nullptr);
  object["devices"] = or_null(worker.devices);
  json::array cpus(worker.cpus.begin(), worker.cpus.end());
  object["cpus"] = worker.cpus.empty() ? json::value(nullptr) : json::value(std::move(cpus));
  json::array command;
  for (const std::string& word : worker.argv) command.emplace_back(clean(word));
  object["command"] = std::move(command);
  json::object environment;
  for (const auto& [name, value] : worker.environment) environment[clean(name)] = or_null(value);
  object["environment"] = std::move(environment);
  return object;
}

json::array nodes_json(const Preview& preview) {
  json::array nodes;
  for (const PreviewNode& node : preview.nodes) {
    json::object object;
    object["group_rank"] = node.group_rank;
    object["host"] = node.host.empty() ? json::value(nullptr) : json::value(clean(node.host));
    object["first_rank"] = node.first_rank;
    object["workers"] = node.workers;
    object["here"] = node.here;
    nodes.push_back(std::move(object));
  }
  return nodes;
}

std::string dry_run_text(const Preview& preview) {
  return "Nothing was started (--dry-run).\n\n" + heading_text(preview) + nodes_text(preview) +
         workers_text(preview) + environment_text(preview);
}

std::string dry_run_json(const Preview& preview) {
  json::object object;
  object["run_id"] = or_null(preview.run_id);
  object["host"] = preview.host;
  object["nodes_min"] = preview.nodes_min;
  object["nodes_max"] = preview.nodes_max;
  object["coordinator"] = or_null(coordinator_text(preview));
  object["may_run_coordinator"] = preview.may_run_coordinator;
  object["log_dir"] =
      preview.log_place.empty() ? json::value(nullptr) : json::value(clean(preview.log_place));
  object["nodes"] = nodes_json(preview);
  json::array workers;
  for (const PreviewWorker& worker : preview.workers) workers.push_back(worker_json(worker));
  object["workers"] = std::move(workers);
  return json::serialize(object) + "\n";
}

}  // namespace

Result<std::string> dry_run(const Launch& launch, const Environment& environment,
                            const std::string& log_place) {
  const WorkerConfig& workers = launch.config.workers;
  const auto program = find_program(workers.command.front(), value_or(environment, "PATH", ""));
  Result<void> can_run;
  if (!program) {
    can_run = program.error();
  } else {
    can_run = check_interpreter(*program);
  }
  if (can_run) can_run = find_script(substitute(workers.script, {{"local_rank", "0"}}));
  if (!can_run) {
    Error error = can_run.error();
    error.sentence = spawn_failure_text(Rank(0), launch.preview.host, error);
    return error;
  }
  Preview shown = preview(launch.config, environment, launch.preview);
  shown.log_place = log_place;
  return launch.answer == Launch::Answer::kJson ? dry_run_json(shown) : dry_run_text(shown);
}

namespace {

using Id = OptionId;

/// "from the command line", "from PET_NNODES", "by default".
std::string source_text(const Origin& setting) {
  if (setting.source == Source::kDefault) return "by default";
  return setting.source == Source::kCommandLine ? "from the command line" : "from " + setting.from;
}

class Decisions {
 public:
  Decisions(const Launch& launch, const Environment& environment)
      : launch_(launch),
        environment_(environment),
        preview_(preview(launch.config, environment, launch.preview)) {}

  std::vector<std::string> all(const std::string& console) {
    add_workers();
    add_rendezvous();
    add("command", preview_.workers.front().argv.front(), launch_.config.workers.command_reason);
    add_devices();
    add_threads();
    add_console(console);
    add_logs();
    for (const Origin& setting : launch_.settings) {
      if (setting.source == Source::kDefault || told_.contains(setting.id)) continue;
      add(std::string(spec_of(setting.id).name), value_of(setting), source_text(setting));
    }
    return std::move(lines_);
  }

 private:
  void add(const std::string& what, const std::string& value, const std::string& why) {
    lines_.push_back(what + ": " + value + " (" + why + ")");
  }

  [[nodiscard]] static std::string value_of(const Origin& setting) {
    if (setting.flag) return setting.text.empty() ? "off" : "on";
    return setting.text.empty() ? "none" : setting.text;
  }

  /// "--nproc-per-node=gpu from PET_NPROC_PER_NODE", "--nnodes=1:1 by default"; not listed again.
  [[nodiscard]] std::string origin_of(Id id) {
    told_.insert(id);
    for (const Origin& setting : launch_.settings) {
      if (setting.id != id) continue;
      return dashed(spec_of(id)) + (setting.flag ? " " : "=" + setting.text + " ") +
             source_text(setting);
    }
    return "by default";
  }

  [[nodiscard]] bool is_given(Id id) const {
    return std::any_of(launch_.settings.begin(), launch_.settings.end(), [id](const Origin& each) {
      return each.id == id && each.source != Source::kDefault && !each.text.empty();
    });
  }

  void add_workers() {
    const bool by_gpus =
        std::any_of(launch_.settings.begin(), launch_.settings.end(), [](const Origin& each) {
          return each.id == Id::kNprocPerNode && each.source != Source::kDefault && !each.given;
        });
    if (by_gpus) told_.insert(Id::kNprocPerNode);
    add("workers", std::to_string(launch_.config.workers.count),
        by_gpus ? "one for each device of --gpus" : origin_of(Id::kNprocPerNode));
  }

  void add_rendezvous() {
    if (!preview_.coordinator && !preview_.coordinator_is_open) {
      return add("rendezvous", "none", "a single node");
    }
    std::string value =
        count_text(preview_.nodes_min, preview_.nodes_max, "node") + ", coordinator ";
    value += preview_.coordinator ? *preview_.coordinator : "decided at the start";
    if (preview_.may_run_coordinator) value += ", which this node may run";
    add("rendezvous", value, origin_of(is_given(Id::kHosts) ? Id::kHosts : Id::kNnodes));
    add_links();
  }

  void add_links() {
    if (launch_.config.rendezvous && launch_.config.rendezvous->certificates) {
      return add("links", "encrypted, for nodes with a certificate of the CA",
                 origin_of(Id::kRdzvTlsCert));
    }
    const bool sealed = launch_.config.rendezvous && launch_.config.rendezvous->secret;
    std::string why = "neither --rdzv-secret-file, DDPRUN_SECRET nor ~/.config/ddprun/secret";
    if (sealed) why = "from " + launch_.config.rendezvous->secret_from;
    if (is_given(Id::kRdzvSecretFile)) why = origin_of(Id::kRdzvSecretFile);
    add("links", sealed ? "encrypted, for nodes with the secret" : "in clear text", why);
  }

  void add_devices() {
    const bool own = std::any_of(
        preview_.workers.begin(), preview_.workers.end(),
        [&](const PreviewWorker& each) { return each.devices != preview_.workers[0].devices; });
    std::string value = preview_.workers.front().devices.value_or("all");
    if (value.empty()) value = "none";
    for (std::size_t i = 1; own && i < preview_.workers.size(); ++i) {
      value += "; " + preview_.workers[i].devices.value_or("all");
    }
    std::string why = "no variable hides any";
    if (preview_.workers.front().devices) why = "from the environment of ddprun";
    if (!launch_.config.workers.virtual_devices.empty()) why = "each worker sees one";
    if (is_given(Id::kGpus)) why = origin_of(Id::kGpus);
    add("devices", value, why);
  }

  void add_threads() {
    std::string value;
    for (const PreviewWorker& worker : preview_.workers) {
      const auto set = worker.environment.find("OMP_NUM_THREADS");
      const bool known = set != worker.environment.end() && set->second;
      const std::string one =
          known ? *set->second : value_or(environment_, "OMP_NUM_THREADS", "not set");
      if (worker.local_rank == LocalRank(0)) value = one;
      if (one != value) value = "different";
    }
    add("OMP_NUM_THREADS", value, launch_.config.workers.threads_reason);
  }

  void add_console(const std::string& reason) {
    add("console", std::string(name_of(launch_.config.log.console)),
        reason.empty() ? origin_of(Id::kConsole) : reason);
  }

  void add_logs() {
    const bool given = is_given(Id::kLogDir);
    std::string why = given ? origin_of(Id::kLogDir) : "without --log-dir it is a temporary one";
    if (!launch_.config.log.asks_for_files()) why += ", which is removed after success";
    add("logs", preview_.log_place.empty() ? "none" : "below " + preview_.log_place, why);
  }

  const Launch& launch_;
  const Environment& environment_;
  Preview preview_;
  std::vector<std::string> lines_;
  std::set<Id> told_{Id::kVerbose};
};

}  // namespace

std::vector<std::string> decisions(const Launch& launch, const Environment& environment,
                                   const std::string& console) {
  return Decisions(launch, environment).all(console);
}

}  // namespace ddprun
