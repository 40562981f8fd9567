// ddprun-rdzvd without its command line: the coordinator of many runs and a store on one address,
// until a signal stops it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/certificates.hpp"
#include "rendezvous/coordinator/limits.hpp"
#include "rendezvous/coordinator/status_access.hpp"
#include "rendezvous/store/refusal.hpp"

namespace ddprun::coordinator {

struct DaemonOptions {
  std::string bind = "127.0.0.1";              // an address literal: names are never resolved
  std::uint16_t port = 29400;                  // 0: the kernel picks a port
  std::string secret_file;                     // empty: none
  std::optional<Certificates> certificates{};  // beside no secret
  store::Limits store;
  Limits limits;
  StatusAccess status = StatusAccess::kLocal;
  /// See LiveRuns; empty: none. Unset: live_runs_path().
  std::optional<std::string> state_file{};
};

/// Serves until SIGTERM or SIGINT, then closes every connection. This does not stop the runs: the
/// next daemon at this address continues them. Prints "ready ADDRESS:PORT" to stdout once clients
/// can connect; errors and the reasons of closed connections go to stderr. Returns the exit code.
[[nodiscard]] int run(const DaemonOptions& options);

}  // namespace ddprun::coordinator
