// --rdzv-conf: k1=v1,k2=v2. What the keys mean depends on the backend; a key that has
// nothing to limit there costs one line. Pure, no thread rule.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/core/rendezvous_config.hpp"
#include "base/result.hpp"
#include "launcher/options/settings.hpp"

namespace ddprun {

/// What the user gave, checked by itself.
struct RendezvousConf {
  std::optional<Duration> join_timeout;
  std::optional<Duration> last_call_timeout;
  std::optional<Duration> keep_alive_interval;
  std::optional<int> keep_alive_max_attempt;
  std::optional<Duration> coordinator_timeout;
  std::optional<Duration> timeout;  // of the static backend
  enum class Host { kUnset, kYes, kNo };
  Host is_host = Host::kUnset;
  std::vector<std::string> keys;     // known ones, as given
  std::vector<std::string> unknown;  // ignored, and said
};

[[nodiscard]] Result<RendezvousConf> read_rendezvous_conf(const Settings& settings);

/// The backend, or none.
enum class ConfUse { kSingleNode, kElastic, kStatic };

/// The given limits in place of the defaults, those of c10d or static.
void apply(const RendezvousConf& conf, ConfUse use, RendezvousConfig& config);

/// One line for each key that does nothing, with the reason. A single node waits for nobody, so
/// there the keys are only checked.
[[nodiscard]] std::vector<std::string> conf_notes(const RendezvousConf& conf, ConfUse use,
                                                  const Settings& settings);

/// One line for the unknown keys, if there are any, with the known ones.
[[nodiscard]] std::vector<std::string> conf_warnings(const RendezvousConf& conf,
                                                     const Settings& settings);

}  // namespace ddprun
