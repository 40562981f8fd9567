// --rdzv-conf: k1=v1,k2=v2. On one node nobody waits for anybody, so the values are only checked.
// Pure, no thread rule.
#pragma once

#include <string>

#include "base/result.hpp"
#include "launcher/options/settings.hpp"

namespace ddprun {

/// The warning about unknown keys, which names them and the known ones; empty when there are none.
[[nodiscard]] Result<std::string> check_rendezvous_conf(const Settings& settings);

}  // namespace ddprun
