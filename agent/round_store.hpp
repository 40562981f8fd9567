// RoundStore: where the workers of one round meet. Fresh, empty and on another port in every round,
// so that nothing a dead worker left can be read by a live one. Thread rule: the io_context's
// thread. Ownership: owns the server; closing is final.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "agent/core/launch_config.hpp"
#include "base/result.hpp"
#include "rendezvous/store/server.hpp"

namespace ddprun {

class RoundStore {
 public:
  /// Listens and serves before it returns, so before any worker starts. With StoreHost::kWorkerZero
  /// only a free port is chosen: rank 0 serves there itself. `log` hears of refused clients; null:
  /// nobody does. Errors: kPortTaken for a master port in use, kUsage for a listen address that is
  /// no address literal.
  [[nodiscard]] static Result<RoundStore> open(boost::asio::any_io_executor executor,
                                               const LaunchConfig& config,
                                               std::shared_ptr<spdlog::logger> log);

  [[nodiscard]] std::uint16_t port() const { return port_; }
  /// "127.0.0.1:41207"; empty when the agent does not serve it.
  [[nodiscard]] const std::string& served_at() const { return served_at_; }
  /// Call it when the workers of the round are gone.
  void close();

 private:
  RoundStore(std::uint16_t port, std::string served_at, std::unique_ptr<store::Server> server);

  std::uint16_t port_;
  std::string served_at_;
  std::unique_ptr<store::Server> server_;  // null with StoreHost::kWorkerZero
};

}  // namespace ddprun
