// Unproven: connections in a handshake, whose peers have not proved who they are. Together they get
// a share of the time, one network after the other, and where there are too many the network with
// the most loses its oldest: who comes from one place delays and crowds out itself. Pure, single
// owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/clock.hpp"

namespace ddprun::coordinator {

/// Handshakes get one part of so many of the time at most.
inline constexpr int kUnprovenShare = 2;

class Unproven {
 public:
  /// `network`: of its address, as network_of() names it.
  void add(std::uint64_t id, const std::string& network);
  /// It has proved who it is, or is closed.
  void remove(std::uint64_t id);
  [[nodiscard]] std::size_t size() const { return all_.size(); }
  /// The oldest of the network that has most; only if there is one.
  [[nodiscard]] std::uint64_t loser() const;

  /// It has sent something, which costs time.
  void want_turn(std::uint64_t id);
  /// Whose turn it is; none: no connection waits, or their share is used up.
  [[nodiscard]] std::optional<std::uint64_t> next_turn(TimePoint now);
  /// What the turn has cost.
  void spent(Duration cost, TimePoint now) { free_at_ = now + (kUnprovenShare - 1) * cost; }
  /// When the next turn may be taken; none: no connection waits.
  [[nodiscard]] std::optional<TimePoint> next_at() const;
  [[nodiscard]] std::size_t waiting() const { return waiting_; }

 private:
  struct Network {
    std::list<std::uint64_t> all;       // oldest first
    std::deque<std::uint64_t> waiting;  // those that want a turn; some may be gone
  };
  struct One {
    std::string network;
    std::list<std::uint64_t>::iterator place;
    bool waits = false;
  };
  std::map<std::string, Network> networks_;
  std::unordered_map<std::uint64_t, One> all_;
  std::string last_;  // the network that had a turn last
  std::size_t waiting_ = 0;
  TimePoint free_at_{};
};

}  // namespace ddprun::coordinator
