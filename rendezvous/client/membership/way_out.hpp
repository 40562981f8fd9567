// WayOut: whether this node stays in its run, wants to leave it, or knows how it ends; and how
// often its user asked for that. Pure. Owned by Membership.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "rendezvous/client/membership/events.hpp"

namespace ddprun::client {

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
