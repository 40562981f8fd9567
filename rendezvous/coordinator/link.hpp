// One accepted connection of the coordinator's port and the frames that wait to be sent on it. An
// idle agent costs a few hundred bytes here: it owns no buffer. Not for other rooms. One thread.
#pragma once

#include <netinet/in.h>
#include <sys/epoll.h>

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "rendezvous/protocol/frame.hpp"
#include "rendezvous/round/event.hpp"
#include "rendezvous/store/budget.hpp"

namespace ddprun::coordinator {

struct RunEntry;

/// Bytes to send, shared by all connections they go to and counted once.
class Frame {
 public:
  Frame(std::string content, store::Budget& budget) : bytes(std::move(content)), budget_(budget) {
    budget_.take(bytes.size());
  }
  ~Frame() { budget_.give_back(bytes.size()); }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  const std::string bytes;

 private:
  store::Budget& budget_;
};
using SharedFrame = std::shared_ptr<const Frame>;

/// Frames that wait for room in the socket, first in, first out.
class Outbox {
 public:
  enum class Sent { kAll, kSome, kBroken };

  void push(SharedFrame frame);
  /// Sends as much as the socket takes.
  [[nodiscard]] Sent flush(int socket);
  void clear();
  [[nodiscard]] bool empty() const { return first_ == frames_.size(); }
  /// Bytes behind the frame that is being sent.
  [[nodiscard]] std::size_t behind() const;

 private:
  std::vector<SharedFrame> frames_;
  std::size_t first_ = 0;   // the frame that is being sent
  std::size_t offset_ = 0;  // of it, sent
  std::size_t bytes_ = 0;   // of all frames from first_ on
};

enum class LinkState : std::uint8_t {
  kArriving,  // its first bytes do not tell yet what it speaks
  kHttp,
  kAgent,
  kClosing,  // nothing is read any more; closed when all was sent and the peer has gone
  kDead,     // to be forgotten
};

struct Link {
  Link(std::uint64_t number, int socket, const sockaddr_storage& from);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  std::uint64_t id;
  int fd;
  LinkState state = LinkState::kArriving;
  bool queued = false;            // waits to be flushed
  bool mute = false;              // the peer takes nothing any more
  bool ended = false;             // we have finished sending
  bool awaited = false;           // closed with a last word for an agent, who may yet take it
  std::uint32_t interest = 0;     // what epoll watches
  std::size_t partial = 0;        // bytes of its incomplete frame, as counted
  std::shared_ptr<RunEntry> run;  // since its hello
  std::string held;               // first bytes, or an HTTP request, while incomplete
  std::unique_ptr<protocol::FrameReader> reader;  // while a frame is incomplete
  Outbox outbox;
  std::optional<std::list<std::pair<TimePoint, std::uint64_t>>::iterator> due;
  sockaddr_in6 from{};  // or sockaddr_in in its place
};

/// Numeric, without port; an IPv4 address that came through an IPv6 socket is written as IPv4.
[[nodiscard]] std::string address_text(const sockaddr_in6& address);
/// With port, for the log.
[[nodiscard]] std::string peer_text(const Link& link);
[[nodiscard]] round::Peer peer_of(const Link& link);

}  // namespace ddprun::coordinator
