// Stores: the rendezvous stores of one node. A listener is open for the next round, a round with
// group rank 0 here turns it into its store, and the store of an ended round stays open until its
// last client has gone, or a limit. Pure: orders are appended to `actions`. Owned by Membership.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "rendezvous/client/membership/events.hpp"

namespace ddprun::client {

class Stores {
 public:
  /// The store of an ended round.
  struct Released {
    Round round;
    TimePoint close_at;
  };

  /// `released_max`: how long clients have to go after the end of a round.
  explicit Stores(Duration released_max) : released_max_(released_max) {}

  void open(Actions& actions);
  void opened(std::uint16_t port) { port_ = port; }
  /// Of the listener for the next round; 0: it is being opened.
  [[nodiscard]] std::uint16_t port() const { return port_; }

  /// The listener becomes the store of `round`.
  void serve(const protocol::StartRound& round, Actions& actions);
  /// The round that is served here, if one is, has ended.
  void release(TimePoint now, Actions& actions);
  [[nodiscard]] const std::vector<Released>& released() const { return released_; }

  void close(Round round, Actions& actions);
  void close_overdue(TimePoint now, Actions& actions);
  void close_released(Actions& actions);

 private:
  void close_if(const std::function<bool(const Released&)>& which, Actions& actions);

  Duration released_max_;
  std::uint16_t port_ = 0;
  std::optional<Round> serving_;
  std::vector<Released> released_;
};

}  // namespace ddprun::client
