// Group: the life of this node's workers, from StartGroup to GroupGone, and NodeRound: the newest
// round that the node knows, and what became of it here. While the workers of an older round end,
// the two differ. Pure. Owned by Membership.
#pragma once

#include <cstdint>
#include <optional>

#include "rendezvous/client/membership/events.hpp"

namespace ddprun::client {

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

}  // namespace ddprun::client
