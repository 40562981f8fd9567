// Implementation of Server: sessions on a Reactor, and the calls into Parser and Store. Private to
// this room. Thread rule: one thread.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/quota.hpp"
#include "net/reactor.hpp"
#include "rendezvous/store/rank_zero.hpp"
#include "rendezvous/store/replies.hpp"
#include "rendezvous/store/server.hpp"
#include "rendezvous/store/server_peers.hpp"
#include "rendezvous/store/store.hpp"
#include "rendezvous/store/turns.hpp"
#include "rendezvous/store/wire.hpp"

namespace ddprun::store {

/// Log lines about refused connections: at once, and then the time per line. More are omitted,
/// counted, and the number is logged with the next line.
inline constexpr int kLogLinesMax = 64;
inline constexpr std::chrono::minutes kLogLineInterval{1};
inline constexpr std::size_t kLogKindsMax = 64;
/// Bytes per recv() from a session that is not in the middle of a long value.
inline constexpr std::size_t kReceiveBytes = 64 * 1024;

/// What an address has added to the memory of the store over all its connections, also those that
/// are closed by now, less what it gave back.
struct Share {
  std::string address{};  // its key in shares_; empty: of those that have none of their own
  std::size_t added = 0;
  std::size_t connections = 0;
  Turns::Share number = 0;
};
/// Addresses with a share of their own; more have one together.
inline constexpr std::size_t kSharesMax = 65'536;

/// One connection. Owns no buffer while idle.
struct Session : net::Connection {
  Session(std::uint64_t number, int socket, const sockaddr_storage& peer, Budget& copied)
      : Connection(number, socket, peer), replies(copied) {}
  [[nodiscard]] ConnectionId store_id() const { return static_cast<ConnectionId>(id); }

  Dialect dialect = Dialect::kUndecided;
  bool eof = false;         // the client has shut down its sending side
  bool paused = false;      // not read until the client drains its replies, or until its next turn
  bool queued = false;      // in Impl::to_flush_
  bool listing = false;     // its request is being answered, over several turns
  bool woken = false;       // meanwhile its wait was over
  bool waits_turn = false;  // in Impl::turns_, and not in the epoll set
  TimePoint waits_since{};  // while it waits for keys
  std::size_t added = 0;    // to the memory of the store, less what it gave back
  Share* share = nullptr;   // of its address
  std::uint32_t process = 0;  // its pid, which old releases of torch do not tell; 0: untold
  ReplyQueue replies;
  std::unique_ptr<Parser> parser;     // while a request is incomplete
  std::unique_ptr<std::string> held;  // received, unparsed bytes while paused
};

class Server::Impl final : public net::Reactor::Handler, public std::enable_shared_from_this<Impl> {
 public:
  Impl(boost::asio::any_io_executor executor, ServerOptions options);
  ~Impl();

  void listen(boost::asio::ip::tcp::acceptor listener) { reactor_.listen(std::move(listener)); }
  Result<void> start();
  void close();
  [[nodiscard]] boost::asio::ip::tcp::endpoint endpoint() const { return reactor_.endpoint(); }
  [[nodiscard]] std::size_t connections() const { return sessions_.size(); }
  [[nodiscard]] Counters counters() const;
  [[nodiscard]] std::vector<StoreWait> waits() const;
  void adopt(int socket, const sockaddr_storage& from, std::string_view received);
  void when_idle(std::function<void()> idle);
  void on_rank_claims(std::function<void(const RankClaims&)> seen) {
    on_rank_claims_ = std::move(seen);
  }

 private:
  /// How the handling of an event ended: the session lives on, or why it ends.
  enum class End { kAlive, kPeerClosed, kPeerReset, kOutOfMemory, kRefused };

  // server.cpp: lifetime of the server.
  void on_accept(int socket, const sockaddr_storage& from) override { (void)admit(socket, from); }
  net::Reactor::Turn on_batch_end() override;
  void on_exhausted(const std::string& why) override;
  [[nodiscard]] End check_peer(const Session& session);
  Session* admit(int socket, const sockaddr_storage& from);
  void return_memory();
  void drop_spares_when_idle(std::size_t moves_before);
  void tell_idle();
  void forget_later();
  void forget_some();

  // server_sessions.cpp: lifetime of a session.
  void on_event(std::uint64_t id, std::uint32_t events) override;
  /// Limits an out-of-memory condition to the session being served.
  template <class Work>
  End guarded(Work work) {
    try {
      return work();
    } catch (const std::bad_alloc&) {
      return End::kOutOfMemory;
    }
  }
  [[nodiscard]] End serve(Session& session, std::uint32_t events);
  End receive(Session& session);
  End process_input(Session& session, std::string_view input);
  End parse(Session& session, Parser& parser, std::string_view input);
  void count_added(Session& session, std::size_t used_before);
  [[nodiscard]] std::optional<Reason> refusal_of_share(const Session& session) const;
  [[nodiscard]] Share& share_of(const sockaddr_in6& from);
  void leave_share(const Session& session);
  End pause(Session& session, std::string_view rest);
  End resume(Session& session);
  End go_on(Session& session);
  void drop_later();
  End flush(Session& session);
  /// Whether serving pauses until the client has read its replies.
  [[nodiscard]] bool is_backlogged(const Session& session, std::size_t unsent_max) const;
  void wake_up(const std::vector<ConnectionId>& woken);
  void settle(Session& session, End end);
  void flush_queued();
  void watch(Session& session);
  Session* find(ConnectionId id) { return sessions_.find(static_cast<std::uint64_t>(id)); }
  void end_session(Session& session, End end);
  void look_for_rank_zero(Session& session, const Request& request);
  void drop_waits(const Session& session);
  void log_end(const Session& session, End end);
  void log_once(const Session& session, const std::string& kind, const std::string& cause);
  void wait_turn(Session& session);
  void serve_later();
  void serve_one_turn();
  void serve_in_turn(Session& session);

  ServerOptions options_;
  boost::asio::any_io_executor executor_;
  net::Reactor reactor_;
  bool dropping_spares_ = false;
  boost::asio::steady_timer drop_spares_;  // runs only while memory_ keeps spare blocks
  boost::asio::steady_timer forget_;       // runs only while no client is connected
  bool closed_ = false;
  bool session_quota_used_ = false;  // set when a session used up its quota in this batch

  Memory memory_;
  Budget copied_replies_;
  Store store_;
  std::unique_ptr<Parser> spare_parser_;
  std::unique_ptr<char[]> receive_buffer_;
  std::map<std::string, Share> shares_;  // by network_of() an address
  Turns::Share shares_made_ = 0;
  Turns turns_;
  bool turn_posted_ = false;
  bool dropping_ = false;  // drop_later() was called
  net::ConnectionTable<Session> sessions_;
  std::vector<ConnectionId> to_flush_;
  std::function<void()> when_idle_;  // empty unless asked for
  RankZero rank_zero_;
  std::function<void(const RankClaims&)> on_rank_claims_;  // empty unless asked for
  std::size_t peers_refused_ = 0;
  std::size_t memory_peak_ = 0;
  Refusal refusal_{Reason::kUnknownOpcode};  // valid after End::kRefused
  net::LoggedCauses logged_;
  LogQuotas quotas_{kLogLinesMax, kLogLineInterval, kLogKindsMax};
};

}  // namespace ddprun::store
