#include "agent/node/node.hpp"

#include <utility>

#include "agent/node/kill_order.hpp"

namespace ddprun {

Node::Node(client::MembershipOptions options, Nodes nodes, TimePoint now)
    : nodes_(nodes), membership_(std::move(options), now), now_(now) {}

node::Actions Node::step(const node::Event& event, TimePoint now) {
  now_ = now;
  actions_.clear();
  std::visit([this](const auto& one) { on(one); }, event);
  return std::exchange(actions_, {});
}

void Node::on(const client::Event& event) {
  feed(event);
  if (std::holds_alternative<client::GroupFailed>(event)) leave_if_asked();
}

void Node::feed(const client::Event& event) {
  const client::Actions actions = membership_.step(event, now_);
  actions_.emplace_back(node::Stepped{membership_.state_names()});
  carry_out(actions);
}

void Node::carry_out(const client::Actions& actions) {
  for (const client::Action& action : actions) {
    std::visit([this](const auto& one) { act(one); }, action);
  }
}

void Node::on(const node::StopAsked& event) {
  const int signal = event.received.number;
  const bool first = stop_signal_ == 0;
  if (first) {
    stop_signal_ = signal;
    stop_reason_ = received_text(event.received);
    stops_all_nodes_ = event.received.all_nodes && nodes_ == Nodes::kSeveral;
  }
  if (has_group_) actions_.emplace_back(node::PassStopSignal{signal});
  if (!first) {
    if (!ddprun::is_forced_stop(signal)) return;
    forced_stop_ = true;
  }
  if (end_) return;
  if (first && !has_group_) actions_.emplace_back(node::LogLeaving{event.received});
  leave_waits_ = has_group_ && event.failure_is_pending;  // that is reported first
  if (!leave_waits_) leave_for_signal();
}

void Node::leave_if_asked() {
  if (!std::exchange(leave_waits_, false)) return;
  leave_for_signal();
  if (forced_stop_) leave_for_signal();
}

// The second time means a forced stop, which an error after a signal, or the reverse, is not.
void Node::leave(int exit_code, const std::string& reason, By by) {
  if (std::exchange(leaving_, true) && !forced_stop_) return;
  const bool requested = by == By::kStop;
  feed(client::LeaveAsked{exit_code, reason, requested, requested && stops_all_nodes_});
}

void Node::on(const node::NotStarted& event) {
  has_group_ = false;
  feed(client::GroupGone{event.round});
}

void Node::on(const node::GroupOver& event) {
  has_group_ = false;
  // It holds what the next round needs here.
  if (const std::string alive = event.result.unkillable_worker(); !alive.empty()) {
    leave(kExitUnkillable, alive + " is still alive after SIGKILL", By::kItself);
  }
  if (std::string line = event.result.untold_death_line(); !line.empty()) {
    deferred_death_line_ = std::move(line);
  }
  feed(gone(event.round, event.result));
}

void Node::flush_deferred_death_line() {
  if (deferred_death_line_.empty()) return;
  actions_.emplace_back(node::LogDeath{take_deferred_death_line()});
}

void Node::act(const client::StartGroup& action) {
  const bool restarts = action.round.restarts > std::exchange(restarts_, action.round.restarts);
  if (nodes_ == Nodes::kSingle && restarts) {
    flush_deferred_death_line();
    actions_.emplace_back(node::LogRestart{action.round.reason});
  }
  has_group_ = true;
  actions_.emplace_back(action);
}

void Node::act(const client::StopGroup& action) {
  if (has_group_) actions_.emplace_back(action);
}

void Node::act(const client::CheckHang& action) {
  if (has_group_) actions_.emplace_back(action);
}

void Node::act(const client::Note& action) {
  if (nodes_ == Nodes::kSingle) return;  // its user reads of a round when the workers start
  flush_deferred_death_line();
  actions_.emplace_back(node::LogNote{action.text});
}

void Node::act(const client::End& action) {
  end_ = action;
  actions_.emplace_back(action);
}

}  // namespace ddprun
