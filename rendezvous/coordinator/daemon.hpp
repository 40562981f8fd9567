// ddprun-rdzvd without its command line: the coordinator of many runs and one store, on one
// address, until a signal ends it.
#pragma once

#include <cstdint>
#include <string>

#include "rendezvous/coordinator/limits.hpp"
#include "rendezvous/store/limits.hpp"

namespace ddprun::coordinator {

struct DaemonOptions {
  std::string bind = "127.0.0.1";  // an address literal: names are never looked up
  std::uint16_t port = 29400;      // 0: the kernel picks
  store::Limits store;
  Limits limits;
};

/// Serves until SIGTERM or SIGINT, then closes every connection; runs do not end by that, they are
/// taken up by the next daemon at this address. Prints "ready ADDRESS:PORT" on
/// stdout once clients can connect, errors and the reasons of closed connections on stderr. Returns
/// the exit code.
[[nodiscard]] int run(const DaemonOptions& options);

}  // namespace ddprun::coordinator
