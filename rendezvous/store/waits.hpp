// Who waits for which names. Each pair (connection, name) is a link in two places, so a name wakes
// its waiters, and a vanished connection drops its waits, in time proportional to their number.
// Pure; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace ddprun::store {

/// A connection, as its server numbers it. Never re-used.
enum class ConnectionId : std::uint64_t {};

class Waits {
 public:
  Waits();
  ~Waits();
  Waits(const Waits&) = delete;
  Waits& operator=(const Waits&) = delete;

  struct Link;
  struct Wait;
  /// Those who wait for one name, longest first. Part of that name's entry; the entry stays where
  /// it is.
  struct Line {
    Link* first = nullptr;
    Link* last = nullptr;
    [[nodiscard]] bool empty() const { return first == nullptr; }
  };

  /// `who` begins to wait for all of `lines` (at least one). Repeated lines count once.
  void add(ConnectionId who, const std::vector<Line*>& lines);
  [[nodiscard]] bool waiting(ConnectionId who) const { return waiting_.contains(who); }
  /// Touches one name. Those for whom it was the last missing one are appended to `woken`.
  void wake_one(Line& line, std::vector<ConnectionId>& woken);
  void wake_all(Line& line, std::vector<ConnectionId>& woken);
  /// Drops all waits of `who`; the lines it stood in are appended to `left`. False: it had none.
  bool drop(ConnectionId who, std::vector<Line*>& left);

  /// Links, that is pairs of connection and name.
  [[nodiscard]] std::size_t size() const { return links_; }

 private:
  void unlink(Link& link);

  std::unordered_map<ConnectionId, std::unique_ptr<Wait>> waiting_;
  std::size_t links_ = 0;
};

struct Waits::Link {
  Line* line = nullptr;  // null once woken
  Wait* wait = nullptr;
  Link* before = nullptr;
  Link* behind = nullptr;
};

struct Waits::Wait {
  ConnectionId who{};
  std::size_t missing = 0;
  std::vector<Link> links;  // never resized while linked
};

}  // namespace ddprun::store
