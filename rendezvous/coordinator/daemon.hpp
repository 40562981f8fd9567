// ddprun-rdzvd without its command line: the coordinator of many runs and a store on one address,
// until a signal stops it. Thread rule: the io_context's thread.
#pragma once

#include <spdlog/common.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/certificates.hpp"
#include "net/disk_thread.hpp"
#include "rendezvous/coordinator/server.hpp"

namespace ddprun::coordinator {

/// Log lines that wait for a terminal, a pipe or a file system that takes nothing; more are lost
/// and counted.
inline constexpr std::size_t kLogBytesMax = 1024 * 1024;

/// The log of the daemon, written by a DiskThread: a terminal, a pipe or a file system that takes
/// nothing delays no client. Lines beyond `bytes_max` are lost and counted, and the log says how
/// many. The caller owns the descriptor.
[[nodiscard]] spdlog::sink_ptr make_log_sink(const DiskThread& thread, int descriptor,
                                             std::size_t bytes_max = kLogBytesMax);

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
