#include "agent/coordinate/store_peers.hpp"

#include <utility>

#include "agent/proc/process_table.hpp"

namespace ddprun {

std::shared_ptr<store::Peers> make_store_peers(const LaunchConfig& config,
                                               std::shared_ptr<spdlog::logger> log) {
  if (config.store.open) return nullptr;
  store::Peers::Options options;
  options.runs_as = &any_process_below_runs_as;
  options.log = std::move(log);
  return std::make_shared<store::Peers>(std::move(options));
}

}  // namespace ddprun
