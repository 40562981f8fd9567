// The coordinator as a TCP server: agents (DDPR), c10d clients and GET /status share one port. The
// shell around round::Run (one per run id) and beside one c10d store. It decides nothing.
//
// Thread rule: everything on the one thread of the executor's io_context. May be destroyed at any
// time on that thread. It never looks up a name; a peer that is slow, silent or hostile is bounded
// in bytes and time and disturbs no other peer.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/certificates.hpp"
#include "base/clock.hpp"
#include "base/led_round.hpp"
#include "base/rank_claims.hpp"
#include "base/result.hpp"
#include "base/secret.hpp"
#include "base/store_wait.hpp"
#include "base/types.hpp"
#include "rendezvous/coordinator/limits.hpp"
#include "rendezvous/coordinator/status_access.hpp"
#include "rendezvous/coordinator/succession.hpp"
#include "rendezvous/protocol/run_record.hpp"
#include "rendezvous/round/admission.hpp"
#include "rendezvous/store/refusal.hpp"
#include "rendezvous/store/server_peers.hpp"

namespace spdlog {
class logger;
}

namespace ddprun::coordinator {

class LiveRuns;

struct ServerOptions {
  /// `connections` bounds all connections of the port, agents included.
  store::Limits store;
  /// Notes of the runs, and why peers were refused or closed; null: no log.
  std::shared_ptr<spdlog::logger> log;
  /// Inside `ddprun`: agents of any other run are refused by name. Unset: many runs.
  std::optional<RunId> only_run;
  /// Agents have to prove that they know it, and their links are encrypted; null: no secret.
  SharedSecret secret = nullptr;
  /// The same with certificates in place of a secret: agents need one that the CA has signed.
  std::optional<Certificates> certificates{};
  Limits limits;
  StatusAccess status = StatusAccess::kLocal;
  /// Who may use the store; joined agents add their addresses. Null: all clients.
  std::shared_ptr<store::Peers> peers = nullptr;
  /// Of `only_run`: set if other coordinators follow this one. What the one before it left.
  std::optional<RunRecord> record{};
  /// Called when that has changed; recorded() answers. The agents hear a verdict only when it is
  /// recorded. May be empty.
  std::function<void(const RunRecord&)> on_record{};
  /// False: another coordinator may act for the run. Then this one answers heartbeats and does
  /// nothing else until resume(). Asked before every decision; may be empty.
  std::function<bool()> may_act{};
  /// Elected in this term; 0: it was not.
  std::int64_t term = 0;
  /// What keeps the record ("etcd h1:2379"), and how long a run that has ended waits for it: after
  /// that its agents hear the verdict, with a sentence about the keeper.
  std::string keeper{};
  Duration keeper_timeout = std::chrono::minutes(1);
  /// Of `only_run`: what the node of this coordinator runs. Who runs another command is refused at
  /// once, also before that node has joined. Unset: the first agent says it.
  std::optional<round::RunTerms> own{};
  /// Names the agent in this process, if it has one: no other agent is believed to be it.
  std::optional<AgentId> own_agent{};
  /// Of many runs: those that have a round are kept here; null: they are not.
  std::shared_ptr<LiveRuns> live_runs = nullptr;
  /// Of `only_run`: coordinators follow each other without a third party.
  Succession succession{};
  /// For how many connections the process has descriptors. With more, those that have said nothing
  /// give way; new ones wait until the kernel has a descriptor for them.
  std::size_t descriptors = std::numeric_limits<std::size_t>::max();
};

class Server {
 public:
  /// Takes over `listener`, which listens already: peers may connect from then on and are served
  /// after start().
  Server(boost::asio::any_io_executor executor, boost::asio::ip::tcp::acceptor listener,
         ServerOptions options);
  /// As close().
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Begins to serve. Once only. Fails with kSystem when the process has no descriptor left.
  [[nodiscard]] Result<void> start();
  /// Ends every run with this verdict; agents have time to end their workers and disconnect.
  void shut_down(int exit_code, const std::string& reason);
  /// New clients find an empty store from now on; those of `ended` keep theirs until close_store().
  /// `idle` is called once, later, when the last of them has disconnected or this server was
  /// closed; not after close_store() or the destructor. Only after start().
  void begin_fresh_store(Round ended, std::function<void()> idle);
  void close_store(Round ended);
  /// The clients of the live store that wait for keys.
  [[nodiscard]] std::vector<StoreWait> store_waits() const;
  /// Calls `seen` as store::Server::on_rank_claims() does, for the live store. Only after start().
  void on_rank_claims(std::function<void(const RankClaims&)> seen);
  /// Completes when no run is left: each has sent its verdict, and its agents have disconnected
  /// or had their time for it; a peer that connects meanwhile does not prolong it. At once if there
  /// is none. One call at a time. Cancelling it only ends this wait; the server serves until
  /// close().
  [[nodiscard]] boost::asio::awaitable<void> settle();
  /// Whether a run has its verdict and agents that wait for it.
  [[nodiscard]] bool is_ending() const;
  /// Of `only_run`: the settled round after which this coordinator decides, if it does.
  [[nodiscard]] std::optional<LedRound> led() const;
  /// Whether it sends its agents to another coordinator of the run.
  [[nodiscard]] bool has_moved() const;
  /// `meets` may be called while this one leads, repeatedly for the same one; it calls nothing
  /// here.
  void on_rival(MeetRival meets);
  /// `resigned` is called when the node of this coordinator has left the run and the others are
  /// told to find another one: it listens no longer, and is to be destroyed, later.
  void on_resigned(std::function<void()> resigned);
  /// may_act() holds again: what came meanwhile is handled, in order.
  void resume();
  /// What on_record() got is kept.
  void recorded(const RunRecord& record);
  /// Closes everything at once.
  void close();

  /// The body of GET /status.
  [[nodiscard]] std::string status_json();

  [[nodiscard]] boost::asio::ip::tcp::endpoint endpoint() const;
  /// Random; the answer to a protocol::Probe.
  [[nodiscard]] const std::string& nonce() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace ddprun::coordinator
