// Links: the connections of the coordinator's port. It reads and decodes what they say, sends what
// they are told, and bounds each in bytes and time, so that none of them costs the others much. It
// decides nothing about a run. Private to this room. Thread rule: one thread.
//
// Nothing is erased while an event is handled: a closed link is marked kClosed, and erased by
// erase_closed() at the end of the batch.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "base/quota.hpp"
#include "net/reactor.hpp"
#include "net/tls.hpp"
#include "rendezvous/coordinator/arrivals.hpp"
#include "rendezvous/coordinator/outbox.hpp"
#include "rendezvous/coordinator/server.hpp"
#include "rendezvous/protocol/frame.hpp"
#include "rendezvous/round/event.hpp"

namespace ddprun::coordinator {

struct RunEntry;

/// Bytes received from one connection per turn.
inline constexpr std::size_t kReceiveBytes = 4 * 1024;
/// Bytes that are read from one agent per second; the report of a failure has a few thousand.
inline constexpr std::size_t kLinkBytesPerSecond = 1024 * 1024;
/// Burst allowance per agent, expressed as time at the permitted rate.
inline constexpr Duration kLinkCredit = std::chrono::milliseconds(250);

/// How much one agent may say. An agent sends a heartbeat a second, and now and then a report; one
/// that sends without end is read more slowly, and so costs the others no time. Nothing is lost:
/// what it sends waits in its kernel. Pure.
class LinkBudget {
 public:
  void spend(std::size_t frames, std::size_t bytes, std::size_t frames_per_second, TimePoint now) {
    const std::chrono::duration<double> cost(
        std::max(static_cast<double>(frames) / static_cast<double>(frames_per_second),
                 static_cast<double>(bytes) / static_cast<double>(kLinkBytesPerSecond)));
    read_at_ = std::max(read_at_, now - kLinkCredit) + std::chrono::duration_cast<Duration>(cost);
  }
  /// When more is read.
  [[nodiscard]] TimePoint read_at() const { return read_at_; }

 private:
  TimePoint read_at_{};
};

enum class LinkState : std::uint8_t {
  kArriving,  // the protocol is not yet known
  kHttp,
  kAgent,
  kAtGate,   // a client of the store that may be of an ended round: not read
  kClosing,  // not read any more; closed once everything is sent and the peer has disconnected
  kClosed,   // erased at the end of the batch
};

/// An idle agent needs a few hundred bytes, because it owns no buffer.
struct Link : net::Connection {
  Link(std::uint64_t number, int socket, const sockaddr_storage& peer, Budget& unsent)
      : Connection(number, socket, peer), outbox(unsent) {}

  [[nodiscard]] bool is_read() const {
    return !resting && !waits_turn && state != LinkState::kAtGate;
  }

  LinkState state = LinkState::kArriving;
  bool queued = false;            // in the flush queue
  bool mute = false;              // the peer no longer reads
  bool resting = false;           // not read: it has used up its budget
  bool waits_turn = false;        // not read: `held` has what its handshake continues with
  bool ended = false;             // we have shut down our sending side
  bool awaited = false;           // closing with a last message that the agent may still read
  std::size_t partial = 0;        // counted bytes of its incomplete frame or request
  std::shared_ptr<RunEntry> run;  // set by its hello
  /// Of an agent: where its workers are, until its node is a member of a round.
  struct Workers {
    AgentId agent;
    std::vector<std::string> addresses;
  };
  std::optional<Workers> workers;
  std::string held;  // first bytes, a part of a handshake, or an HTTP request
  std::unique_ptr<protocol::FrameReader> reader;  // while a frame is incomplete
  std::unique_ptr<net::TlsSession> tls;           // null: clear text
  Outbox outbox;
  LinkBudget budget;
  std::optional<std::list<std::pair<TimePoint, std::uint64_t>>::iterator> due;
  std::optional<std::list<std::uint64_t>::iterator> incomplete;  // set while `partial` is not 0
};

[[nodiscard]] round::Peer peer_of(const Link& link);

class Links {
 public:
  // What has been received, of an agent, of a client of HTTP (Link::held has its request so far),
  // or of a client of the store (Link::held has its first bytes).
  using Messages = std::vector<Result<protocol::Message>>;
  struct HttpText {};
  struct StoreClient {};
  using Heard = std::variant<std::monostate, Messages, HttpText, StoreClient>;

  /// Both outlive it.
  Links(net::Reactor& reactor, const ServerOptions& options);
  [[nodiscard]] Result<void> start();
  /// Closes everything at once.
  void clear();

  /// Takes an accepted socket, which is not watched before watch_new().
  [[nodiscard]] Link& add(int socket, const sockaddr_storage& from);
  void watch_new(Link& link);
  /// Another connection needs a place.
  void make_room();
  /// There is none: closes it at once.
  void turn_away(Link& link);

  /// Reads once, so that a peer that floods is not read more often than others.
  [[nodiscard]] Heard receive(Link& link) {
    read(link);
    return std::exchange(heard_, {});
  }
  /// After the messages that were heard.
  void finish(Link& link);
  /// The message of an agent that cannot be understood.
  void answer_invalid(Link& link, const Error& error);
  /// An HTTP request is incomplete, or complete.
  void await_rest(Link& link) { count_partial(link, link.held.size()); }
  void drop_request(Link& link);
  /// What strangers send costs the time of members: a signature, the check of a chain. So links in
  /// a handshake wait for turns; null: it is the turn of none.
  [[nodiscard]] Link* next_handshake();
  [[nodiscard]] Heard continue_handshake(Link& link);
  void end_handshake_turn(Link& link, TimePoint begun);
  /// If it waits for one.
  void watch_until_turn(Link& link);

  void send(Link& link, const SharedFrame& frame);
  void send(Link& link, protocol::Message message);
  void refuse(Link& link, protocol::Refused refused);
  /// Once everything is sent.
  void close(Link& link);
  enum class By { kPeer, kNetwork };  // what ended the link
  /// It ended unexpectedly.
  void lose(Link& link, const std::string& evidence, By by = By::kPeer);
  void mark_closed(Link& link);
  void flush(Link& link);
  /// Keeps it in place, unread, until it is released or closed.
  void hold_at_gate(Link& link);
  /// Its socket, which is not watched any more; the link is closed.
  [[nodiscard]] int release(Link& link);

  // A link is closed after Limits::idle_timeout unless it has said what it came for.
  void restart_idle_time(Link& link);
  void end_idle_time(Link& link);
  /// When something is due: a link is to be closed, read again, or may continue its handshake.
  [[nodiscard]] std::optional<TimePoint> deadline() const;
  /// What such a link has sent is to be read first.
  [[nodiscard]] bool has_overdue() const;
  void close_overdue();
  void read_rested();

  // The end of a batch.
  struct Loss {
    std::shared_ptr<RunEntry> run;
    round::LinksLost lost;
  };
  [[nodiscard]] bool has_losses() const { return !lost_.empty(); }
  [[nodiscard]] std::optional<Loss> take_loss();
  /// False: there was nothing to send.
  bool flush_queued();
  /// Whether there were any.
  bool erase_closed();
  /// Whether a peer had sent more than it is read of in this batch.
  [[nodiscard]] bool take_flood() { return std::exchange(peer_floods_, false); }

  /// Null if it is closed.
  [[nodiscard]] Link* find(std::uint64_t id) const;
  template <class Visit>
  void for_each(Visit visit) const {
    links_.for_each(visit);
  }
  /// The key of a link belongs to one run; a certificate is for all.
  [[nodiscard]] bool is_of_another_run(const Link& link, const std::string& run) const;
  void log_once(const Link& link, const std::string& cause);
  [[nodiscard]] std::size_t size() const { return links_.size(); }
  [[nodiscard]] std::size_t open() const { return links_.size() - closed_links_.size(); }
  [[nodiscard]] std::size_t agents() const { return agents_; }
  /// Closing ones, whose agents may still read a last message.
  [[nodiscard]] std::size_t leaving() const { return leaving_; }
  /// Those without the proof, and agents in clear text.
  [[nodiscard]] std::size_t rejected() const { return rejected_; }
  /// Of what is not sent yet.
  [[nodiscard]] Budget& unsent() { return unsent_; }

 private:
  // These leave what they understand in heard_.
  void read(Link& link);
  void understand(Link& link, std::string_view input);
  void arrive(Link& link, std::string_view input);
  void begin_agent(Link& link, std::string_view input);
  void decode(Link& link, std::string_view input);
  void open_sealed(Link& link, std::string_view input);
  void begin_tls(Link& link);
  void await_turn(Link& link, std::string_view input);
  void reject(Link& link, const std::string& cause);
  void rest_if_due(Link& link);
  void count_partial(Link& link, std::size_t bytes);
  void forget_partial(Link& link);
  void enqueue(Link& link, SharedFrame frame);
  void enqueue(Link& link, std::string bytes);
  void queue(Link& link);
  void watch(Link& link);
  void begin_idle_time(Link& link);

  net::Reactor& reactor_;
  const ServerOptions& options_;
  net::SharedTlsContext tls_;  // null: links in clear text
  Budget unsent_;
  Budget partial_;
  std::unique_ptr<char[]> receive_buffer_;
  std::unique_ptr<protocol::FrameReader> spare_reader_;
  Heard heard_;
  protocol::Message last_message_;  // what last_frame_ says: equal messages are encoded once
  SharedFrame last_frame_;

  std::size_t agents_ = 0;
  std::size_t leaving_ = 0;
  std::size_t rejected_ = 0;
  bool peer_floods_ = false;
  net::ConnectionTable<Link> links_;
  std::vector<std::uint64_t> closed_links_;             // in links_ until the end of the batch
  std::list<std::pair<TimePoint, std::uint64_t>> due_;  // soonest first
  std::list<std::uint64_t> incomplete_;  // links with counted partial bytes, longest first
  Unproven unproven_;                    // links whose agents have proved nothing yet
  Unproven unheard_;                     // links without a hello, in clear text
  std::multimap<TimePoint, std::uint64_t> resting_;  // links, by when they are read again
  std::vector<std::uint64_t> to_flush_;
  std::map<std::shared_ptr<RunEntry>, round::LinksLost> lost_;  // in this batch
  net::LoggedCauses logged_;
  LogQuotas closed_quotas_;
  LogQuota unproven_quota_;
};

}  // namespace ddprun::coordinator
