// A store without sockets: takes the bytes of numbered connections and returns the bytes that each
// connection would receive. Connections use the modern dialect unless stated otherwise.
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

  /// Sends `bytes` in one piece on connection `client` and returns the immediate reply.
  std::string send(int client, std::string_view bytes) {
    Peer& peer = open(client, Dialect::kModern);
    feed(client, peer, bytes);
    return receive(client);
  }
  /// Same, for a connection whose first bytes determine the dialect.
  std::string send_raw(int client, std::string_view bytes) {
    Peer& peer = open(client, Dialect::kUndecided);
    feed(client, peer, bytes);
    return receive(client);
  }
  /// The bytes sent to `client` since the last call.
  std::string receive(int client) {
    ReplyQueue& replies = peers_.at(client)->replies;
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
  void disconnect(int client) {
    store.on_disconnect(id(client));
    while (store.drop_some(1)) {
    }
    peers_.erase(client);
  }
  /// Why `client` was closed; empty while it is open.
  std::string refusal(int client) const { return peers_.at(client)->refusal; }
  Reason reason(int client) const { return peers_.at(client)->reason; }

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

  static ConnectionId id(int client) { return static_cast<ConnectionId>(client); }

  Peer& open(int client, Dialect dialect) {
    auto& peer = peers_[client];
    if (peer == nullptr) peer = std::make_unique<Peer>(*this, dialect);
    return *peer;
  }
  void close(int client, Peer& peer, const Refusal& refusal) {
    peer.refusal = to_text(refusal, limits);
    peer.reason = refusal.reason;
    store.on_disconnect(id(client));
  }
  void feed(int client, Peer& peer, std::string_view bytes) {
    std::string input(bytes);  // freed on return, so that ASan detects views that outlive it
    std::string_view rest(input);
    while (peer.refusal.empty()) {
      const auto result = peer.parser.next(rest);
      if (result == Parser::Result::kNeedMore) {
        if (!peer.parser.suspend()) close(client, peer, peer.parser.refusal());
        return;
      }
      if (result == Parser::Result::kRefused) return close(client, peer, peer.parser.refusal());
      const auto refused = store.step(id(client), peer.parser.request(), peer.replies);
      while (store.list_more(id(client), 1)) {
      }
      auto left = refused;
      while (!left && store.is_unfinished(id(client)))
        left = store.go_on(id(client), 1, peer.replies);
      for (const ConnectionId woken : store.woken()) {
        peers_.at(static_cast<int>(woken))->replies.put_u8(0);
      }
      if (left) close(client, peer, *left);
    }
  }

  std::map<int, std::unique_ptr<Peer>> peers_;
};

}  // namespace ddprun::store
