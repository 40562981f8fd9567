#include "launcher/options/scan.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "launcher/options/option_table.hpp"

namespace ddprun {

std::size_t edit_distance(std::string_view left, std::string_view right) {
  std::vector<std::size_t> before(right.size() + 1);
  std::vector<std::size_t> above(right.size() + 1);
  std::vector<std::size_t> row(right.size() + 1);
  for (std::size_t j = 0; j <= right.size(); ++j) above[j] = j;
  for (std::size_t i = 1; i <= left.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= right.size(); ++j) {
      const std::size_t replaced = above[j - 1] + (left[i - 1] == right[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, replaced});
      const bool swapped =
          i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(above);
    above.swap(row);
  }
  return above[right.size()];
}

namespace {

struct Synonym {
  std::string_view name;    // as other launchers spell it, without dashes in front
  std::string_view option;  // ours
};
constexpr Synonym kSynonyms[] = {
    {"n", "nproc-per-node"},
    {"np", "nproc-per-node"},
    {"nprocs", "nproc-per-node"},
    {"nprocs-per-node", "nproc-per-node"},
    {"num-procs", "nproc-per-node"},
    {"num-processes", "nproc-per-node"},
    {"num-proc-per-node", "nproc-per-node"},
    {"ntasks-per-node", "nproc-per-node"},
    {"num-workers", "nproc-per-node"},
    {"workers", "nproc-per-node"},
    {"world-size", "nproc-per-node"},
    {"ngpus", "nproc-per-node"},
    {"num-gpus", "nproc-per-node"},
    {"gpus-per-node", "nproc-per-node"},
    {"N", "nnodes"},
    {"nodes", "nnodes"},
    {"num-nodes", "nnodes"},
    {"num-machines", "nnodes"},
    {"machine-rank", "node-rank"},
    {"main-process-ip", "master-addr"},
    {"main-process-port", "master-port"},
    {"port", "master-port"},
    {"H", "hosts"},
    {"hostfile", "hosts"},
    {"machinefile", "hosts"},
    {"endpoint", "rdzv-endpoint"},
    {"rendezvous-endpoint", "rdzv-endpoint"},
    {"rendezvous-backend", "rdzv-backend"},
    {"backend", "rdzv-backend"},
    {"run-id", "rdzv-id"},
    {"job-id", "rdzv-id"},
    {"restarts", "max-restarts"},
    {"retries", "max-restarts"},
    {"max-retries", "max-restarts"},
    {"grace-period", "shutdown-timeout"},
    {"timeout", "hang-timeout"},
    {"heartbeat-timeout", "hang-timeout"},
    {"logs", "log-dir"},
    {"output-dir", "log-dir"},
    {"silent", "quiet"},
    {"background", "detach"},
    {"daemon", "detach"},
    {"V", "version"},
};

std::string_view synonym_of(std::string_view name) {
  for (const Synonym& synonym : kSynonyms) {
    if (synonym.name == name) return synonym.option;
  }
  return {};
}

std::size_t common_prefix(std::string_view left, std::string_view right) {
  const auto differs = std::mismatch(left.begin(), left.end(), right.begin(), right.end());
  return static_cast<std::size_t>(differs.first - left.begin());
}

/// An option that begins like this, or of whose name it has all but the end. The longest such
/// beginning decides, then the order of --help: workers before nodes.
std::string_view begun_by(std::string_view name) {
  const OptionSpec* best = nullptr;
  std::size_t best_length = 0;
  for (const OptionSpec& option : all_options()) {
    const std::size_t length = common_prefix(name, option.name);
    const bool nearly_all = length >= 4 && length * 4 >= option.name.size() * 3;
    if ((length < name.size() && !nearly_all) || length < best_length) continue;
    const bool first = best != nullptr && length == best_length && option.group >= best->group;
    if (first) continue;
    best = &option;
    best_length = length;
  }
  return best == nullptr ? std::string_view() : best->name;
}

std::string_view spelled_like(std::string_view name) {
  std::string_view best;
  std::size_t best_distance = std::numeric_limits<std::size_t>::max();
  for (const OptionSpec& option : all_options()) {
    const std::size_t distance = edit_distance(name, option.name);
    if (distance >= best_distance) continue;
    best = option.name;
    best_distance = distance;
  }
  return is_typing_mistake(name, best_distance) ? best : std::string_view();
}

}  // namespace

bool is_typing_mistake(std::string_view word, std::size_t distance) {
  constexpr std::size_t kLettersPerMistake = 3;
  return distance * kLettersPerMistake <= word.size();
}

std::string suggestion(const std::string& unknown) {
  std::string name = unknown.substr(std::min(unknown.find_first_not_of('-'), unknown.size()));
  std::replace(name.begin(), name.end(), '_', '-');
  name.resize(std::min(name.find('='), name.size()));
  if (unknown.starts_with("-") && !unknown.starts_with("--")) {  // "-n2" of mpirun
    name.resize(name.find_last_not_of("0123456789") + 1);
  }
  if (name.empty()) return {};
  for (const auto find : {synonym_of, begun_by, spelled_like}) {
    const std::string_view option = find(name);
    if (!option.empty()) return "did you mean --" + std::string(option) + "?";
  }
  return {};
}

}  // namespace ddprun
