// RoundStore: where the workers of one round meet. Fresh, empty and on another port in every round,
// so that nothing a dead worker left can be read by a live one. Thread rule: the io_context's
// thread. Ownership: owns the server; closing is final.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/config/launch_config.hpp"
#include "base/rank_claims.hpp"
#include "base/result.hpp"
#include "rendezvous/store/server.hpp"
#include "rendezvous/store/server_peers.hpp"

namespace ddprun {

/// How many connections a store or a coordinator in this process may have: clients leave the
/// descriptors that this node's workers and their restarts need.
[[nodiscard]] std::size_t connections_max(const LaunchConfig& config);

class RoundStore {
 public:
  /// Listens on `config.store.listen_addr` (empty: on the wildcard address) and `port` (0: a free
  /// one): clients that connect before serve() wait. `log` gets refused clients; null: none.
  /// Errors: kPortTaken for a port in use, kUsage for a listen address that is no address literal.
  [[nodiscard]] static Result<RoundStore> listen(boost::asio::any_io_executor executor,
                                                 const LaunchConfig& config, std::uint16_t port,
                                                 std::shared_ptr<spdlog::logger> log);
  /// Once, before any worker starts. With StoreHost::kWorkerZero it only gives the port free, on
  /// which rank 0 serves itself. Fails with kSystem when the process has no descriptor left.
  /// `peers`: who may use it; null: all clients. `seen` is called as by
  /// store::Server::on_rank_claims().
  [[nodiscard]] Result<void> serve(std::shared_ptr<store::Peers> peers,
                                   std::function<void(const RankClaims&)> seen);

  [[nodiscard]] std::uint16_t port() const { return port_; }
  /// "127.0.0.1:41207"; empty when the agent does not serve it.
  [[nodiscard]] const std::string& served_at() const { return served_at_; }
  /// Zeros where the agent does not serve it.
  [[nodiscard]] store::Counters counters() const {
    return server_ == nullptr ? store::Counters() : server_->counters();
  }
  /// Who waits for which key now; none where the agent does not serve it.
  [[nodiscard]] std::vector<StoreWait> waits() const {
    return server_ == nullptr ? std::vector<StoreWait>() : server_->waits();
  }
  /// Call it when the workers of the round are gone.
  void close();
  /// Calls `idle` once, later, when no client is connected. False: there is no server here to ask.
  [[nodiscard]] bool when_idle(std::function<void()> idle);

 private:
  RoundStore(boost::asio::ip::tcp::acceptor listener, const LaunchConfig& config,
             std::shared_ptr<spdlog::logger> log);

  boost::asio::ip::tcp::acceptor listener_;  // until serve()
  StoreHost host_;
  std::size_t connections_max_;
  std::shared_ptr<spdlog::logger> log_;
  std::uint16_t port_;
  std::string served_at_;
  std::unique_ptr<store::Server> server_;  // null with StoreHost::kWorkerZero
};

}  // namespace ddprun
