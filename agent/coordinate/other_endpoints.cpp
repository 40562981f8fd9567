#include "agent/coordinate/other_endpoints.hpp"

#include <utility>

#include "agent/coordinate/link_messages.hpp"

namespace ddprun {

void OtherEndpoints::tell(const std::optional<client::Membership::Led>& led) {
  const std::optional<client::Membership::Led> before = std::exchange(led_, led);
  const bool is_known = before && led && before->place == led->place;
  if (is_known || (!before && !led)) return;
  notices_.clear();
  if (!led) return;
  const auto says = [this]() -> std::optional<protocol::Lead> {
    if (!led_) return std::nullopt;
    return protocol::Lead{config_.run_id,      led_->round,  led_->place.port,
                          led_->place.address, led_->origin, command_key(config_.workers)};
  };
  for (const CoordinatorAddress& one : config_.rendezvous->endpoints) {
    const bool is_there = one.host == led->place.address && one.port == led->place.port;
    if (is_there) continue;
    notices_.push_back(std::make_unique<EndpointNotice>(executor_, config_, one, says));
  }
}

}  // namespace ddprun
