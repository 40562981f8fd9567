// --rdzv-conf: k1=v1,k2=v2. What the keys mean depends on the backend; a key that has
// nothing to limit there costs one line. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/config/rendezvous_config.hpp"
#include "base/result.hpp"
#include "launcher/setting.hpp"

namespace ddprun {

/// The given values, checked independently of the backend.
struct RendezvousConf {
  std::optional<Duration> join_timeout;
  std::optional<Duration> last_call_timeout;
  std::optional<Duration> keep_alive_interval;
  std::optional<int> keep_alive_max_attempt;
  std::optional<Duration> coordinator_timeout;
  std::optional<Duration> timeout;   // of the static backend
  std::optional<bool> is_host;       // whether this node runs the coordinator
  std::string user;                  // of etcd
  std::string password_file;         // the same
  std::string etcd_prefix;           // of the keys in etcd
  std::string protocol;              // of etcd: "http", "https"; empty: not given
  Certificates etcd_tls;             // with https; `shown` has the option and the key
  bool file_store = false;           // store_type=file: the endpoint is a path
  std::vector<std::string> keys;     // known ones, as given
  std::vector<std::string> unknown;  // ignored, with a warning
};

[[nodiscard]] Result<RendezvousConf> parse_conf(const Origin& origin);

/// The backend, or none.
enum class ConfUse { kSingleNode, kElastic, kStatic, kEtcd };

/// The given limits in place of the defaults, those of c10d or static.
void apply(const RendezvousConf& conf, ConfUse use, RendezvousConfig& config);

/// One line for each key that does nothing, with the reason. A single node waits for no other, so
/// there the keys are only checked.
[[nodiscard]] std::vector<std::string> conf_notes(const Setting<RendezvousConf>& conf, ConfUse use);

/// One line for the unknown keys, if there are any, with the known ones.
[[nodiscard]] std::vector<std::string> conf_warnings(const Setting<RendezvousConf>& conf);

}  // namespace ddprun
