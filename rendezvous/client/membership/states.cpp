#include "rendezvous/client/membership/states.hpp"

#include <array>
#include <utility>

#include "base/assert.hpp"

namespace ddprun::client {

using way_out::Decided;
using way_out::Ended;
using way_out::Leaving;
using way_out::Staying;

void Group::start(Round round) {
  DDPRUN_ASSERT(is_none());
  state_ = State::kAlive;
  round_ = round;
}

void Group::stop() {
  DDPRUN_ASSERT(can_be_stopped());
  state_ = State::kEnding;
}

bool Group::succeeded(Round round) {
  const bool counts = round == round_ && is_alive();
  if (counts) state_ = State::kStraggling;
  return counts;
}

// Also after a stop was ordered: it may be the first failure of the run.
bool Group::failed(Round round) {
  const bool counts = round == round_ && !is_none();
  if (counts) state_ = State::kEnding;
  return counts;
}

bool Group::gone(Round round) {
  const bool counts = round == round_ && !is_none();
  if (counts) state_ = State::kNone;
  return counts;
}

const char* Group::name() const {
  static constexpr std::array<const char*, 4> kNames{"None", "Alive", "Straggling", "Ending"};
  return kNames.at(static_cast<std::size_t>(state_));
}

protocol::Claim NodeRound::claim() const {
  const RestartCount used = restarts.value_or(start.restarts);
  protocol::Claim claim{start.stamp, start.group_rank, start.group_size, used,
                        state,       start.succession, settled};
  claim.restart_told = restarts.has_value();
  claim.cut_short = cut_short;
  return claim;
}

protocol::Report NodeRound::report(std::uint16_t store_port) const {
  protocol::Report report;
  report.round = number();
  report.state = state;
  report.store_port = store_port;
  if (state == protocol::NodeState::kFailed) report.failure = failure;
  return report;
}

void Stores::open(Actions& actions) {
  port_ = 0;
  actions.emplace_back(OpenStore{});
}

void Stores::serve(const protocol::StartRound& round, Actions& actions) {
  serving_ = round.stamp.number;
  actions.emplace_back(ServeStore{round.stamp.number, round.store_peers});
  open(actions);
}

void Stores::release(TimePoint now, Actions& actions) {
  if (!serving_) return;
  released_.push_back({*serving_, now + released_max_});
  actions.emplace_back(ReleaseStore{*std::exchange(serving_, std::nullopt)});
}

void Stores::close(Round round, Actions& actions) {
  close_if([round](const Released& store) { return store.round == round; }, actions);
}

void Stores::close_overdue(TimePoint now, Actions& actions) {
  close_if([now](const Released& store) { return now >= store.close_at; }, actions);
}

void Stores::close_released(Actions& actions) {
  close_if([](const Released&) { return true; }, actions);
}

void Stores::close_if(const std::function<bool(const Released&)>& which, Actions& actions) {
  for (const Released& store : released_) {
    if (which(store)) actions.emplace_back(CloseStore{store.round});
  }
  std::erase_if(released_, which);
}

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
