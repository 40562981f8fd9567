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
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/certificates.hpp"
#include "base/clock.hpp"
#include "base/led_round.hpp"
#include "base/result.hpp"
#include "base/secret.hpp"
#include "base/store_facts.hpp"
#include "base/types.hpp"
#include "rendezvous/coordinator/http.hpp"
#include "rendezvous/protocol/limits.hpp"
#include "rendezvous/protocol/run_record.hpp"
#include "rendezvous/round/admission.hpp"
#include "rendezvous/round/authority.hpp"
#include "rendezvous/store/refusal.hpp"
#include "rendezvous/store/server_peers.hpp"

namespace spdlog {
class logger;
}

namespace ddprun::coordinator {

class LiveRuns;

/// Limits of the port, in addition to those of the store (store/refusal.hpp) and of a message
/// (protocol/limits.hpp).
struct Limits {
  /// Maximum number of connected agents of all runs; one more is refused with a sentence.
  std::size_t agents = 65'536;
  /// Maximum number of active runs; an agent of one more is refused with a sentence.
  std::size_t runs = 1'024;
  /// Messages that are read from one agent per second; LinkBudget says what one may send at once.
  std::size_t link_frames = 1'000;
  /// From the first byte to the end of an agent's hello or of an HTTP request, and for reading the
  /// last bytes of a connection; then it is closed.
  std::chrono::milliseconds idle_timeout{10'000};
  /// Handshakes of agents that are not complete; one more closes the oldest of the network that has
  /// most.
  std::size_t handshakes = 1'024;
  /// Unsent bytes of one agent in addition to the frame being sent; above this it is lost.
  std::size_t link_unsent_bytes = 1024 * 1024;
  /// Memory of the unsent frames of all agents and of status pages; above this, slow readers are
  /// lost.
  std::size_t unsent_bytes = 256 * 1024 * 1024;
  /// Incomplete frames of agents and HTTP requests; above this, the oldest are closed.
  std::size_t partial_bytes = 64 * 1024 * 1024;
};
static_assert(Limits().link_unsent_bytes >= protocol::kFrameBytesMax,
              "every frame fits in a queue");

/// A finished run answers late agents and is shown for this long; it is removed earlier if a new
/// run needs its place.
inline constexpr std::chrono::minutes kOverKept{10};
/// Log lines of one run, which its agents cause: at once, and then the time per line. More are
/// omitted, counted, and the number is logged with the next line.
inline constexpr int kRunLinesMax = 256;
inline constexpr std::chrono::seconds kRunLineInterval{5};

/// Of a run in which coordinators follow each other: what this one has of those before it, and what
/// it owes those after it.
struct SeatTerms {
  /// What the one before it left.
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
  /// Without a third party: set if it comes after a coordinator that was lost, and has to find a
  /// majority (docs/FAILOVER.md).
  std::optional<round::SuccessionOptions::Candidate> candidate{};
  /// The candidate got no majority: it is to be destroyed, later. May be empty.
  std::function<void(const std::string& reason)> on_abdicate{};
};

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
  /// Of `only_run`, as are those that follow.
  SeatTerms seat{};
  /// Other nodes may coordinate the run after this one, without a third party.
  bool fails_over = false;
  /// It listens where the run's endpoint is.
  bool at_endpoint = false;
  /// Of `--hosts`, or a scheduler's list: how it begins, "host:port"; else empty.
  std::string list_begins{};
  /// What the node of this coordinator runs. Who runs another command is refused at
  /// once, also before that node has joined. Unset: the first agent says it.
  std::optional<round::RunTerms> own{};
  /// Names the agent in this process, if it has one: no other agent is believed to be it.
  std::optional<AgentId> own_agent{};
  /// Of many runs: those that have a round are kept here; null: they are not.
  std::shared_ptr<LiveRuns> live_runs = nullptr;
  /// For how many connections the process has descriptors. With more, those that have said nothing
  /// give way; new ones wait until the kernel has a descriptor for them.
  std::size_t descriptors = std::numeric_limits<std::size_t>::max();
};

/// Called with the address and port of another coordinator of the run, which leads a run that began
/// apart and does not know that it is to yield to this one.
using MeetRival = std::function<void(const std::string& host, std::uint16_t port)>;

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

/// Starts a coordinator: on return it serves. `bind` is an address literal; empty means the
/// wildcard address, of both families if the host has IPv6. Errors: kPortTaken if the port is in
/// use, kUsage if `bind` is not a literal, otherwise kSystem.
[[nodiscard]] Result<std::unique_ptr<Server>> open_server(boost::asio::any_io_executor executor,
                                                          const std::string& bind,
                                                          std::uint16_t port,
                                                          ServerOptions options);

}  // namespace ddprun::coordinator
