// A store without sockets: bytes of a numbered connection go in, the bytes each connection would be
// sent come out. Connections speak the modern dialect unless made otherwise.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/store/store.hpp"
#include "rendezvous/store/wire.hpp"
#include "tests/store/requests.hpp"

namespace ddprun::store {

class Harness {
 public:
  explicit Harness(Limits bounds = {})
      : limits(bounds),
        memory(limits.store_bytes),
        copied(limits.reply_bytes),
        store(limits, memory) {}

  /// Sends `bytes` in one piece on connection `who` and returns what that connection is answered
  /// now.
  std::string send(int who, std::string_view bytes) {
    Peer& peer = open(who, Dialect::kModern);
    feed(who, peer, bytes);
    return receive(who);
  }
  /// A connection whose dialect its first bytes decide.
  std::string send_raw(int who, std::string_view bytes) {
    Peer& peer = open(who, Dialect::kUndecided);
    feed(who, peer, bytes);
    return receive(who);
  }
  /// What has been sent to `who` since it was last asked.
  std::string receive(int who) {
    ReplyQueue& replies = peers_.at(who)->replies;
    std::string bytes;
    while (!replies.empty()) {
      iovec parts[3];
      const std::size_t count = replies.gather(parts);
      for (std::size_t at = 0; at < count; ++at) {
        bytes.append(static_cast<const char*>(parts[at].iov_base), parts[at].iov_len);
      }
      std::size_t length = 0;
      for (std::size_t at = 0; at < count; ++at) length += parts[at].iov_len;
      replies.sent(length);
    }
    return bytes;
  }
  void disconnect(int who) {
    store.gone(id(who));
    peers_.erase(who);
  }
  /// Why `who` was closed; empty while it is open.
  std::string refusal(int who) const { return peers_.at(who)->refusal; }
  Reason reason(int who) const { return peers_.at(who)->reason; }

  Limits limits;
  Memory memory;
  Budget copied;
  Store store;

 private:
  struct Peer {
    explicit Peer(Harness& home, Dialect dialect)
        : parser(home.limits, home.memory), replies(home.copied) {
      parser.serve(dialect);
    }
    Parser parser;
    ReplyQueue replies;
    std::string refusal;
    Reason reason{};
  };

  static ConnectionId id(int who) { return static_cast<ConnectionId>(who); }

  Peer& open(int who, Dialect dialect) {
    auto& peer = peers_[who];
    if (peer == nullptr) peer = std::make_unique<Peer>(*this, dialect);
    return *peer;
  }
  void close(int who, Peer& peer, const Refusal& refusal) {
    peer.refusal = to_text(refusal, limits);
    peer.reason = refusal.reason;
    store.gone(id(who));
  }
  void feed(int who, Peer& peer, std::string_view bytes) {
    std::string input(
        bytes);  // given up afterwards: what is borrowed past this point shows under ASan
    std::string_view rest(input);
    while (peer.refusal.empty()) {
      const auto result = peer.parser.next(rest);
      if (result == Parser::Result::kNeedMore) {
        if (!peer.parser.suspend()) close(who, peer, peer.parser.refusal());
        return;
      }
      if (result == Parser::Result::kRefused) return close(who, peer, peer.parser.refusal());
      const auto refused = store.step(id(who), peer.parser.request(), peer.replies);
      for (const ConnectionId woken : store.woken()) {
        peers_.at(static_cast<int>(woken))->replies.put_u8(0);
      }
      if (refused) close(who, peer, *refused);
    }
  }

  std::map<int, std::unique_ptr<Peer>> peers_;
};

}  // namespace ddprun::store
