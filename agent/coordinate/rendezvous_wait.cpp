#include "agent/coordinate/rendezvous_wait.hpp"

#include "agent/coordinate/link_messages.hpp"

namespace ddprun {

const std::optional<Wait>& RendezvousWait::after(const client::Event& event, bool joined,
                                                 TimePoint now) {
  if (std::holds_alternative<client::LinkDown>(event)) wait_for_coordinator(joined, now);
  if (const auto* incoming = std::get_if<client::Incoming>(&event)) {
    const auto* waiting = std::get_if<protocol::Waiting>(&incoming->message);
    if (waiting != nullptr) wait_for_nodes(*waiting, now);
  }
  return wait_;
}

void RendezvousWait::end() {
  wait_.reset();
  nodes_since_.reset();
}

// The limits are those of client::Membership.
void RendezvousWait::wait_for_coordinator(bool joined, TimePoint now) {
  if (wait_ && std::holds_alternative<CoordinatorWait>(*wait_)) return;
  const TimePoint since = joined ? now : start_;
  const Duration limit = joined ? config_.coordinator_timeout : config_.join_timeout;
  wait_ = CoordinatorWait{to_text(config_.coordinator), since, since + limit};
}

void RendezvousWait::wait_for_nodes(const protocol::Waiting& waiting, TimePoint now) {
  if (!nodes_since_) nodes_since_ = now;
  NodesWait wait{waiting.here, waiting.nodes_min, waiting.nodes_max, *nodes_since_};
  if (waiting.left.count() > 0) wait.until = now + waiting.left;
  const bool starts = waiting.then == protocol::WaitEnd::kRoundStarts;
  wait_ = wait;
  // Enough have joined, and the message that says when the round starts is still to come.
  if (wait.here >= wait.min && wait.until && !starts) wait_.reset();
}

}  // namespace ddprun
