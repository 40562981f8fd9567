// What Membership keeps of its node: Group, its workers; NodeRound, the newest round that it knows;
// Stores, those that it serves; WayOut, how it leaves the run. Pure. Owned by Membership.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <variant>
#include <vector>

#include "rendezvous/client/membership/events.hpp"

namespace ddprun::client {

/// The life of this node's workers, from StartGroup to GroupGone.
class Group {
 public:
  enum class State : std::uint8_t {
    kNone,        // nothing of them is left, or none was started yet
    kAlive,       //
    kStraggling,  // all exited with 0, and processes that they left behind still run
    kEnding,      // one failed, or a stop was ordered
  };

  [[nodiscard]] bool is_none() const { return state_ == State::kNone; }
  [[nodiscard]] bool is_alive() const { return state_ == State::kAlive; }
  [[nodiscard]] bool is_straggling() const { return state_ == State::kStraggling; }
  [[nodiscard]] bool can_be_stopped() const { return is_alive() || is_straggling(); }
  /// Of the workers that are here, or were the last; 0: there were none.
  [[nodiscard]] Round round() const { return round_; }
  /// "Alive".
  [[nodiscard]] const char* name() const;

  /// None is here.
  void start(Round round);
  /// Can be stopped.
  void stop();
  // What the shell says of a group. False: it is of no group here, or too late to count.
  [[nodiscard]] bool succeeded(Round round);
  [[nodiscard]] bool failed(Round round);
  [[nodiscard]] bool gone(Round round);

 private:
  State state_ = State::kNone;
  Round round_{0};
};

/// What became here of the newest round. While the workers of an older one end, it is not Group's.
struct NodeRound {
  protocol::StartRound start;
  protocol::NodeState state = protocol::NodeState::kStarting;
  Round finished{0};                           // see FinishedBefore; 0: none
  std::optional<WorkerExit> failure{};         // the first of its workers
  std::optional<protocol::Stopped> stopped{};  // nothing of it is left here
  TimePoint failed_at{};                       // when `failure` was learned
  bool settled = false;                        // as its coordinator has told
  bool cut_short = false;                      // the same
  bool of_coordinator = true;  // who decided it is where the coordinator was, when it was lost
  bool author_ended = false;   // the process that decided it
  std::optional<RestartCount> restarts{};   // used, if one answers its failure
  std::optional<protocol::Done> verdict{};  // of a run that failed; its report is to come

  [[nodiscard]] Round number() const { return start.stamp.number; }
  [[nodiscard]] protocol::Claim claim() const;
  [[nodiscard]] protocol::Report report(std::uint16_t store_port) const;
};

/// A listener is open for the next round, a round with group rank 0 here turns it into its store,
/// and the store of an ended round stays open until its last client has gone, or a limit. Orders
/// are appended to `actions`.
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

namespace way_out {
struct Staying {};
/// The coordinator was asked to let this node go.
struct Leaving {
  End end;                           // unless the coordinator knows better
  std::optional<TimePoint> until{};  // its answer is awaited no longer
};
/// How this node ends is final. Its workers, and the clients of its stores, have to go first.
struct Decided {
  End end;
};
struct Ended {};
using State = std::variant<Staying, Leaving, Decided, Ended>;
}  // namespace way_out

/// Whether this node stays in its run, wants to leave it, or knows how it ends; and how often its
/// user asked for that.
class WayOut {
 public:
  /// Asked to leave, by a signal or a local error. Counts, and changes nothing else.
  void ask();
  /// Asked twice: other nodes are not waited for.
  [[nodiscard]] bool hurries() const { return asked_ == Asked::kAgain; }

  [[nodiscard]] bool is_staying() const { return in<way_out::Staying>(); }
  [[nodiscard]] bool is_leaving() const { return in<way_out::Leaving>(); }
  /// Decided or ended.
  [[nodiscard]] bool is_decided() const { return in<way_out::Decided>() || has_ended(); }
  [[nodiscard]] bool has_ended() const { return in<way_out::Ended>(); }
  /// "Staying".
  [[nodiscard]] const char* name() const;

  /// Staying, from now on leaving.
  void leave(End end);
  /// While leaving.
  void wait_until(TimePoint until);
  [[nodiscard]] std::optional<TimePoint> until() const;
  /// Not decided yet.
  void decide(End end);
  /// While leaving or decided.
  [[nodiscard]] const End& end() const;
  /// Decided, from now on ended.
  [[nodiscard]] End finish();

 private:
  enum class Asked : std::uint8_t { kNever, kOnce, kAgain };
  template <class T>
  [[nodiscard]] bool in() const {
    return std::holds_alternative<T>(state_);
  }

  way_out::State state_;
  Asked asked_ = Asked::kNever;
};

}  // namespace ddprun::client
