// An accepted connection of the coordinator's port, and its unsent frames. An idle agent needs a
// few hundred bytes, because it owns no buffer. Private to this room. Thread rule: one thread.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/budget.hpp"
#include "base/clock.hpp"
#include "net/connection.hpp"
#include "net/tls.hpp"
#include "rendezvous/coordinator/link_budget.hpp"
#include "rendezvous/protocol/frame.hpp"
#include "rendezvous/round/event.hpp"

namespace ddprun::coordinator {

struct RunEntry;

/// Bytes to send, shared by all recipients and counted once, with the memory around them.
class Frame {
 public:
  Frame(std::string content, Budget& budget) : bytes(std::move(content)), budget_(budget) {
    budget_.take(memory());
  }
  ~Frame() { budget_.give_back(memory()); }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  const std::string bytes;

 private:
  // Allocated with its reference counts; the blocks of both have a header.
  [[nodiscard]] std::size_t memory() const { return bytes.size() + sizeof(Frame) + 48; }

  Budget& budget_;
};
using SharedFrame = std::shared_ptr<const Frame>;

/// The unsent frames of a connection, first in, first out. Each is counted with its place here.
class Outbox {
 public:
  explicit Outbox(Budget& budget) : budget_(&budget) {}
  ~Outbox() { clear(); }
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  void push(SharedFrame frame);
  /// Fills `parts` from the front; returns how many were filled.
  [[nodiscard]] std::size_t gather(std::span<iovec> parts) const;
  /// Removes `bytes` sent bytes from the front.
  void sent(std::size_t bytes);
  void clear();
  [[nodiscard]] bool empty() const { return !frames_; }
  /// Unsent bytes after the frame that is being sent.
  [[nodiscard]] std::size_t behind() const;

 private:
  static constexpr std::size_t kPlaceBytes = 2 * sizeof(SharedFrame);

  Budget* budget_;
  std::optional<std::deque<SharedFrame>>
      frames_;              // unset when empty: even then it would own memory
  std::size_t offset_ = 0;  // sent bytes of the front frame
  std::size_t bytes_ = 0;   // size of all frames
};

enum class LinkState : std::uint8_t {
  kArriving,  // the protocol is not yet known
  kHttp,
  kAgent,
  kAtGate,   // a client of the store that may be of an ended round: not read
  kClosing,  // not read any more; closed once everything is sent and the peer has disconnected
  kClosed,   // erased at the end of the batch
};

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

}  // namespace ddprun::coordinator
