// LocalCoordinator: the coordinator that runs in the agent's process, as the agent sees it. The
// launcher implements it, because the agent knows its coordinator through the link alone. Thread
// rule: the io_context's thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/led_round.hpp"
#include "base/rank_claims.hpp"
#include "base/result.hpp"
#include "base/store_wait.hpp"
#include "base/types.hpp"
#include "rendezvous/protocol/run_record.hpp"

namespace ddprun {

class LocalCoordinator {
 public:
  LocalCoordinator() = default;
  LocalCoordinator(const LocalCoordinator&) = delete;
  LocalCoordinator& operator=(const LocalCoordinator&) = delete;
  virtual ~LocalCoordinator() = default;

  /// This process was asked to end: so does the run, on every node, with `exit_code` and `reason`.
  virtual void shut_down(int exit_code, const std::string& reason) = 0;
  /// With a fixed master address rounds meet in the store on the coordinator's port: new clients
  /// find an empty one, those of `ended` keep theirs until close_store(). `idle` is called once,
  /// later, when the last of them has gone; not after close_store() or the destructor.
  virtual void begin_fresh_store(Round ended, std::function<void()> idle) = 0;
  virtual void close_store(Round ended) = 0;
  /// Who waits there for which key now.
  [[nodiscard]] virtual std::vector<StoreWait> store_waits() const = 0;
  /// Calls `seen` as store::Server::on_rank_claims() does, for the clients that it has now.
  virtual void on_rank_claims(std::function<void(const RankClaims&)> seen) = 0;
  /// What it tells of the run and its nodes: the body of GET /status (docs/PROTOCOL.md).
  [[nodiscard]] virtual std::string status_json() = 0;
  /// Completes when every other node has had its verdict and gone, or had its time for that.
  [[nodiscard]] virtual boost::asio::awaitable<void> settle() = 0;
  /// Its answer to a protocol::Probe.
  [[nodiscard]] virtual const std::string& nonce() const = 0;
  /// Whether the run has its verdict, which other nodes still wait for.
  [[nodiscard]] virtual bool is_ending() const { return false; }
  /// The settled round after which it decides; none: it waits for a majority, or has no round.
  [[nodiscard]] virtual std::optional<LedRound> led() const { return std::nullopt; }
  /// Whether it has sent its agents to another coordinator of the run.
  [[nodiscard]] virtual bool has_moved() const { return false; }
  /// Calls `meets` with the address and port of another coordinator that leads a run of this id,
  /// began apart, and does not know that it is to yield to this one (docs/FAILOVER.md).
  virtual void on_rival(
      std::function<void(const std::string& host, std::uint16_t port)> /*meets*/) {}
  /// Calls `resigned` when this node has left the run and another one coordinates it: destroy this
  /// object soon, but not from inside the call.
  virtual void on_resigned(std::function<void()> /*resigned*/) {}
  /// SeatTerms::may_act() holds again.
  virtual void resume() {}
  /// etcd has this record, which SeatTerms::on_record() got.
  virtual void recorded(const RunRecord& /*record*/) {}
};

/// Makes the coordinator that is to run in this process, on the agent's executor: before the agent
/// starts, and again as long as no coordinator has answered. Null: another process has the port, or
/// this node is not to be the host. An error ends the run before anything is started.
using MakeLocalCoordinator =
    std::function<Result<std::unique_ptr<LocalCoordinator>>(boost::asio::any_io_executor executor)>;

/// A coordinator that comes into being while the run lives, because this node was chosen for it.
struct SeatTerms {
  std::optional<RunRecord> record;                  // what the one before it left in etcd
  std::function<void(const RunRecord&)> on_record;  // that has changed
  std::function<bool()> may_act;                    // no other one can act now
  std::int64_t term = 0;                            // in which it was elected; 0: it was not
  std::string keeper{};                             // of the record: "etcd h1:2379"
  Duration keeper_timeout{};                        // how long the end of a run waits for that
  /// Without a third party: set if it comes after a coordinator that was lost, and has to find a
  /// majority (docs/FAILOVER.md).
  struct Candidate {
    std::string ended_author;
    std::string why;
    std::string origin;
    std::function<void(const std::string& reason)> on_abdicate;
  };
  std::optional<Candidate> candidate{};
};

/// Serves on `listener`, which listens already.
using OpenCoordinator = std::function<Result<std::unique_ptr<LocalCoordinator>>(
    boost::asio::ip::tcp::acceptor listener, SeatTerms terms)>;

}  // namespace ddprun
