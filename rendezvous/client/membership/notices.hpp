// Notices: which lines an agent writes about its run: no line twice in a row, a wait only after
// kQuietMax and once, however often its remaining time is announced. Pure: lines are appended to
// `actions`. Owned by Membership.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rendezvous/client/membership/events.hpp"

namespace ddprun::client {

/// A wait that is over sooner is not worth a line.
inline constexpr Duration kQuietMax = std::chrono::seconds(3);

struct Wait {
  std::string text;
  std::string end{};     // what ends it: "gives up"
  std::string option{};  // of --rdzv-conf, which sets its length
  std::optional<TimePoint> until{};
};

class Notices {
 public:
  void note(std::string text, Actions& actions);

  /// Replaces the wait before it; together they count as one, since the first began.
  void wait_for(Wait wait, TimePoint now, Actions& actions);
  void note_wait_if_due(TimePoint now, Actions& actions);
  [[nodiscard]] std::optional<TimePoint> due() const;
  /// What is waited for, also before and after it is noted, and when that ends; empty: nothing.
  [[nodiscard]] std::string present(TimePoint now) const;
  /// The present wait is over; another may follow.
  void end_wait();
  /// A round starts, or the run is over: the next wait begins from zero.
  void end_waiting();
  /// A coordinator has answered: waits may be noted again.
  void repeat_waits() { noted_.clear(); }

 private:
  std::string last_;
  std::optional<TimePoint> since_;  // no round runs, and something is waited for
  std::optional<Wait> wait_;        // what for, until it is noted
  std::optional<Wait> present_;     // the same, until it is over
  std::vector<std::string> noted_;  // waits
};

}  // namespace ddprun::client
