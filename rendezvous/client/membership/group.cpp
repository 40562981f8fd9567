#include "rendezvous/client/membership/group.hpp"

#include <array>

#include "base/assert.hpp"

namespace ddprun::client {

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

}  // namespace ddprun::client
