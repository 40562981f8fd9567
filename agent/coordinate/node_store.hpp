// NodeStore: the stores of the live round and of ended ones that ranks of other nodes still use, if
// this node holds them, and the listener for the next round's, which is open before any node is
// sent its port. Thread rule: the io_context's thread. Ownership: owns listener and server; config
// and coordinator outlive it.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "agent/coordinate/open_coordinator.hpp"
#include "agent/coordinate/round_store.hpp"

namespace ddprun {

class NodeStore {
 public:
  /// The local coordinator (may be null) holds the store at a fixed master address.
  NodeStore(boost::asio::any_io_executor executor, const LaunchConfig& config,
            coordinator::Server* local_coordinator, std::shared_ptr<spdlog::logger> log);

  /// Listens for the next round: its port. With MasterChoice::kFixed there is nothing to open, and
  /// the port is the fixed one; that of a single node is opened again by begin(). Errors: see
  /// RoundStore::listen.
  [[nodiscard]] Result<std::uint16_t> open_next();
  /// What open_next() opened becomes the store of the round, empty, for nodes with the addresses
  /// `nodes`; of several nodes, empty: for all. Errors: see RoundStore::serve.
  [[nodiscard]] Result<void> serve(Round round, const std::vector<std::string>& nodes);
  /// The workers of the round are about to start here, those of the last one are gone. Errors: see
  /// RoundStore::listen and serve.
  [[nodiscard]] Result<void> begin();
  /// "127.0.0.1:41207"; empty when this node serves no store.
  [[nodiscard]] std::string served_at() const;
  /// The run is coordinated in another process.
  void forget_coordinator() { local_coordinator_ = nullptr; }
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
  [[nodiscard]] std::shared_ptr<store::Peers> peers_of(const std::vector<std::string>& nodes) const;
  [[nodiscard]] bool fixed() const;
  [[nodiscard]] std::uint16_t own_port() const;
  [[nodiscard]] std::function<void(const RankClaims&)> seen_in(Round round) const;

  boost::asio::any_io_executor executor_;
  const LaunchConfig& config_;
  coordinator::Server* local_coordinator_;
  std::shared_ptr<spdlog::logger> log_;
  std::optional<RoundStore> next_;
  std::map<Round, RoundStore> served_;
  bool listened_ = false;            // on a port, ever
  std::optional<Round> opens_late_;  // its store is opened by begin()
  Seen seen_;
  std::size_t refused_before_ = 0;  // by stores that are closed
  bool used_ = false;  // whether a round met in the local coordinator's store since it was emptied
};

}  // namespace ddprun
