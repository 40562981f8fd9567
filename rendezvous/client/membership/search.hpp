// CoordinatorSearch: where an agent that has lost its coordinator looks for it, in which order, and
// when it is its own turn to be a candidate (docs/FAILOVER.md). Pure. Owned by Membership.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rendezvous/client/membership/events.hpp"

namespace ddprun::client {

/// How an attempt to reach the coordinator ended, or a link to it.
enum class LinkLoss {
  kEnded,    // the peer closed the connection, or it broke
  kRefused,  // the peer's kernel refused to connect: no process listens there
  kSilent,   // nothing came in time
};

// Agents take a silent coordinator for lost up to a heartbeat apart, or one that resigns moments
// apart: so often a successor that has it still is asked again before the search starts over.
inline constexpr int kTurnsMax = 16;

class CoordinatorSearch {
 public:
  enum class Step {
    kAgain,  // the same place, after a delay
    kNow,    // the same place, at once
    kGo,     // place(), at once
    kLead,   // here
    kSoon,   // the same place, after a short delay
    kStart,  // the coordinator that was lost, after a delay
  };

  /// Until a coordinator tells of successors, one of these is asked after each attempt at the
  /// endpoint: a node that led the run in its place listens there, too.
  void also_asks(const std::vector<Place>& hosts);

  /// What the coordinator told; `own`: the group rank of this node, below 0 without one.
  void learn(const std::vector<protocol::Successor>& successors, int own);
  /// An answer of the coordinator of the run, wherever it is: that one is looked for from now on.
  void found();
  /// The coordinator has said that it ends: all lose it, within moments.
  void resigned() { has_resigned_ = true; }
  /// The coordinator has told, or something else, where the run is coordinated.
  void moved();
  /// `answered`: a coordinator had spoken on that link.
  [[nodiscard]] Step lost(LinkLoss loss, bool answered);
  /// This node got no majority. One that follows later may have it, if this node was away when the
  /// others asked it: these are asked, too.
  [[nodiscard]] Step abdicated();

  /// Looks elsewhere than at the coordinator that was lost: who answers there has no say yet.
  [[nodiscard]] bool is_away() const { return at_ > 0; }
  [[nodiscard]] bool is_candidate() const { return is_away() && successors_[at_ - 1].is_here; }
  [[nodiscard]] bool has_hosts() const { return has_hosts_; }
  [[nodiscard]] bool has_successors() const { return !has_hosts_ && !successors_.empty(); }
  [[nodiscard]] const Place& place() const { return successors_[at_ - 1].place; }

 private:
  struct Successor {
    Place place;
    bool is_here = false;
  };
  [[nodiscard]] Step next();
  [[nodiscard]] Step ask_host(LinkLoss loss, bool answered);
  [[nodiscard]] Step start_again();

  std::vector<Successor> successors_;  // or the hosts
  bool has_hosts_ = false;
  std::size_t asked_ = 0;   // of the hosts, in turn
  std::size_t at_ = 0;      // 0: the coordinator; else the successor before
  bool is_silent_ = false;  // the coordinator was
  bool has_resigned_ = false;
  int turned_away_ = 0;     // by the successor
  bool is_behind_ = false;  // it asks those that follow later than itself
};

}  // namespace ddprun::client
