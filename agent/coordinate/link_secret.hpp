// How this run's links are sealed, from its configuration. Call it after run_agent() has made sure
// that the secret, or the certificates, can be used.
#pragma once

#include "agent/config/launch_config.hpp"
#include "rendezvous/client/connection.hpp"

namespace ddprun {

/// Of a run of several nodes.
[[nodiscard]] inline client::LinkSecret link_secret_of(const LaunchConfig& config) {
  const RendezvousConfig& rendezvous = *config.rendezvous;
  return {net::make_link_tls(rendezvous.secret, rendezvous.certificates).value(),
          config.run_id.value(), rendezvous.given_host};
}

}  // namespace ddprun
