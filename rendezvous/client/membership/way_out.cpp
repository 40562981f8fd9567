#include "rendezvous/client/membership/way_out.hpp"

#include <array>
#include <utility>

#include "base/assert.hpp"

namespace ddprun::client {

using way_out::Decided;
using way_out::Ended;
using way_out::Leaving;
using way_out::Staying;

void WayOut::ask() {
  asked_ = asked_ == Asked::kNever ? Asked::kOnce : Asked::kAgain;
}

void WayOut::leave(End end) {
  DDPRUN_ASSERT(in<Staying>());
  state_ = Leaving{std::move(end)};
}

void WayOut::wait_until(TimePoint until) {
  std::get<Leaving>(state_).until = until;
}

std::optional<TimePoint> WayOut::until() const {
  const auto* leaving = std::get_if<Leaving>(&state_);
  return leaving == nullptr ? std::nullopt : leaving->until;
}

void WayOut::decide(End end) {
  DDPRUN_ASSERT(!is_decided());
  state_ = Decided{std::move(end)};
}

const End& WayOut::end() const {
  if (const auto* leaving = std::get_if<Leaving>(&state_)) return leaving->end;
  return std::get<Decided>(state_).end;
}

End WayOut::finish() {
  End end = std::move(std::get<Decided>(state_).end);
  state_ = Ended{};
  return end;
}

const char* WayOut::name() const {
  static constexpr std::array<const char*, std::variant_size_v<way_out::State>> kNames{
      "Staying", "Leaving", "Decided", "Ended"};
  return kNames.at(state_.index());
}

}  // namespace ddprun::client
