// NodeStore: where the workers of a round meet, if that is on this node: the store of the live
// round, those of ended rounds that ranks of other nodes still use, and the listener for the next
// round's, which is open before any node is sent its port. Each store is fresh, empty and on
// another port, so that nothing a dead worker left can be read by a live one. Thread rule: the
// io_context's thread. Ownership: owns listener and servers; config and coordinator outlive it.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/config/launch_config.hpp"
#include "base/result.hpp"
#include "base/store_facts.hpp"
#include "rendezvous/coordinator/server.hpp"
#include "rendezvous/store/server.hpp"
#include "rendezvous/store/server_peers.hpp"

namespace ddprun {

/// How many connections a store or a coordinator in this process may have: clients leave the
/// descriptors that this node's workers and their restarts need.
[[nodiscard]] std::size_t connections_max(const LaunchConfig& config);

/// Who may use the stores that this process serves: processes of this machine that run as this
/// process does, as root, or as one of the processes below this one; and no other machine until one
/// is added. Null with --store-open: all clients may.
[[nodiscard]] std::shared_ptr<store::Peers> make_store_peers(const LaunchConfig& config,
                                                             std::shared_ptr<spdlog::logger> log);

class NodeStore {
 public:
  /// The local coordinator (may be null) holds the store at a fixed master address. `log` gets
  /// refused clients; null: none.
  NodeStore(boost::asio::any_io_executor executor, const LaunchConfig& config,
            coordinator::Server* local_coordinator, std::shared_ptr<spdlog::logger> log);

  /// Listens for the next round: its port; clients that connect before serve() wait. With
  /// MasterChoice::kFixed there is nothing to open, and the port is the fixed one; that of a single
  /// node is opened again by begin(). Errors: kPortTaken for a port in use, kUsage for a listen
  /// address that is no address literal.
  [[nodiscard]] Result<std::uint16_t> open_next();
  /// What open_next() opened becomes the store of the round, empty, for nodes with the addresses
  /// `nodes`; of several nodes, empty: for all. With StoreHost::kWorkerZero it only gives the port
  /// free, on which rank 0 serves itself. Fails with kSystem when the process has no descriptor
  /// left.
  [[nodiscard]] Result<void> serve(Round round, const std::vector<std::string>& nodes);
  /// The workers of the round are about to start here, those of the last one are gone. Errors: as
  /// open_next() and serve().
  [[nodiscard]] Result<void> begin();
  /// "127.0.0.1:41207"; empty when this node serves no store.
  [[nodiscard]] std::string served_at() const;
  /// The run is coordinated in another process.
  void forget_coordinator() { fixed_store_ = nullptr; }
  /// Of all stores that this node serves.
  [[nodiscard]] store::Counters counters() const;
  /// Who waits for which key in the store of the round; none where another node holds it.
  [[nodiscard]] std::vector<StoreWait> waits(Round round) const;
  /// Two processes take part as rank 0 in a round whose store this node has; may be called again
  /// and again. Before the first round.
  using Seen = std::function<void(Round round, const RankClaims& claims)>;
  void on_rank_claims(Seen seen) { seen_ = std::move(seen); }
  /// The round has ended: `idle` is called once, later, when no client of its store is left, also
  /// if begin() ends them; not after close().
  void release(Round round, std::function<void()> idle);
  /// The round's store ends: clients blocked in it notice at once.
  void close(Round round);

 private:
  using Listener = boost::asio::ip::tcp::acceptor;
  [[nodiscard]] Result<void> start(Round round, Listener listener,
                                   const std::vector<std::string>& nodes);
  [[nodiscard]] std::shared_ptr<store::Peers> peers_of(const std::vector<std::string>& nodes) const;
  [[nodiscard]] bool fixed() const;
  [[nodiscard]] std::uint16_t own_port() const;
  [[nodiscard]] std::function<void(const RankClaims&)> seen_in(Round round) const;

  boost::asio::any_io_executor executor_;
  const LaunchConfig& config_;
  coordinator::Server* fixed_store_;  // in which every round meets; null: there is none here
  std::shared_ptr<spdlog::logger> log_;
  std::optional<Listener> next_;
  std::map<Round, std::unique_ptr<store::Server>> served_;  // null where rank 0 serves itself
  bool listened_ = false;                                   // on a port, ever
  std::optional<Round> opens_late_;                         // its store is opened by begin()
  Seen seen_;
  std::size_t refused_before_ = 0;  // by stores that are closed
  bool used_ = false;               // whether a round met in fixed_store_ since it was emptied
};

}  // namespace ddprun
