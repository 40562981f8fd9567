// How this run's links are sealed, from its configuration. Call it after run_agent() has made sure
// that the secret can be used.
#pragma once

#include "agent/core/launch_config.hpp"
#include "rendezvous/client/connection.hpp"

namespace ddprun {

/// Of a run of several nodes.
[[nodiscard]] inline client::LinkSecret link_secret_of(const LaunchConfig& config) {
  if (!config.rendezvous->secret) return {};
  return {net::TlsContext::make(config.rendezvous->secret).value(), config.run_id.value()};
}

}  // namespace ddprun
