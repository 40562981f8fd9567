// Other coordinators of the run, or of one that began apart, learn of the one here.
#include <algorithm>
#include <utility>

#include "agent/coordinate/endpoint_seat.hpp"
#include "agent/coordinate/link_messages.hpp"

namespace ddprun {

namespace {
constexpr std::size_t kRivalsMax = 8;
}  // namespace

/// A leader that began apart and does not know that it is to yield to this one is told so.
void EndpointSeat::attend(coordinator::Server& coordinator, std::uint16_t port) {
  const Leader leader{&coordinator, port};
  coordinator.on_rival([this, leader](const std::string& host, std::uint16_t at) {
    tell_rival({host, at}, leader);
  });
  coordinator.on_resigned([this] { post([this] { resigned(); }); });
}

// Where another coordinator of the run tells that it leads, too, that one is told next.
void EndpointSeat::tell(CoordinatorAddress where, Leader leader) {
  const auto hears = [this, leader](const protocol::Moved& moved) {
    tell_rival({moved.address, moved.port}, leader);
  };
  notices_.push_back(std::make_unique<EndpointNotice>(
      executor_, config_, std::move(where), [this, leader] { return says(leader); }, hears));
}

void EndpointSeat::tell_rival(CoordinatorAddress where, Leader leader) {
  const bool is_told = std::any_of(rivals_.begin(), rivals_.end(), [&where](const Rival& one) {
    return one.where.host == where.host && one.where.port == where.port;
  });
  if (is_told || rivals_.size() >= kRivalsMax) return;
  const auto ends = [this] {
    post([this] {
      std::erase_if(rivals_, [](const Rival& one) { return one.notice->has_ended(); });
    });
  };
  auto notice = std::make_unique<EndpointNotice>(
      executor_, config_, where, [this, leader] { return says(leader); }, nullptr, ends);
  rivals_.push_back({std::move(where), std::move(notice)});
}

std::optional<protocol::Lead> EndpointSeat::says(const Leader& leader) const {
  const auto led = leader.coordinator->led();
  if (!led) return std::nullopt;
  return protocol::Lead{config_.run_id, led->round, leader.port, led->origin,
                        command_key(config_.workers)};
}

}  // namespace ddprun
