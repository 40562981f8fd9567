#include "launcher/decisions.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "agent/proc/spawn.hpp"
#include "base/address.hpp"
#include "base/count_text.hpp"

namespace ddprun {
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
    constexpr std::array kNames{"quoted", "raw", "prefix", "rank0"};
    const auto index = static_cast<std::size_t>(launch_.config.log.console);
    add("console", index < kNames.size() ? kNames.at(index) : "quoted",
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
