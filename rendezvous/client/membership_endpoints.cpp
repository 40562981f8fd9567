// The part of Membership for runs with several endpoints, where any of several coordinators may
// serve: docs/FAILOVER.md.
#include <algorithm>

#include "rendezvous/client/membership.hpp"

namespace ddprun::client {

using namespace protocol;

/// The coordinator is where this agent had looked first.
void Membership::settle_on_endpoint() {
  if (where_ && !left_) return;
  move_to(where_.value_or(options_.endpoints.front()));
  if (left_) notices_.note("the coordinator is " + options_.coordinator, actions_);
  left_.reset();
}

/// Nodes that found different endpoints before there was a round meet at the first one.
bool Membership::looks_back() const {
  const bool waits = answered() && !round_ && seen_ == Round(0) && way_out_.is_staying();
  return waits && search_.has_endpoints() && where_ && *where_ != options_.endpoints.front();
}

void Membership::look_back_if_due() {
  if (!looks_back()) return look_back_at_.reset();
  if (!look_back_at_) {
    const Duration silence = options_.hello.terms.silence_max();
    look_back_after_ = std::max(silence, std::min(2 * look_back_after_, kLookBackMax));
    look_back_at_ = now_ + look_back_after_;
  }
  if (now_ < *look_back_at_) return;
  look_back_at_.reset();
  send(Reconnecting{"another endpoint is preferred, if it answers by now"});
  drop_link(LinkEnd::kOpen);
  left_ = where_;
  move_to(options_.endpoints.front());
  connect();
}

bool Membership::is_endpoint(const Moved& moved) const {
  const auto& all = options_.endpoints;
  return all.empty() || std::any_of(all.begin(), all.end(), [&moved](const Place& place) {
           return place.address == moved.address && place.port == moved.port;
         });
}

std::optional<Membership::Led> Membership::speaks_for() const {
  const bool is_first = round_ && round_->start.group_rank == 0;
  if (!is_first || !answered() || !where_ || !search_.has_endpoints()) return std::nullopt;
  const bool settled = round_->settled || round_->start.succession.needs == 0;
  if (!settled) return std::nullopt;
  return Led{round_->number(), *where_, protocol::name_of_origin(round_->start.succession.origin)};
}

}  // namespace ddprun::client
