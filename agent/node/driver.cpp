#include "agent/node/driver.hpp"

#include <utility>

#include "agent/node/kill_order.hpp"

namespace ddprun {

NodeDriver::NodeDriver(NodePorts& ports, client::MembershipOptions options, Nodes nodes)
    : ports_(ports), nodes_(nodes), membership_(std::move(options), ports.now()) {}

void NodeDriver::begin() {
  feeding_ = true;
  carry_out(membership_.begin(ports_.now()));
  feed_queued();
}

void NodeDriver::feed(client::Event event) {
  const bool is_failure = std::holds_alternative<client::GroupFailed>(event);
  events_.push_back(std::move(event));
  if (!std::exchange(feeding_, true)) feed_queued();
  if (is_failure) leave_if_asked();
}

void NodeDriver::feed_queued() {
  while (!events_.empty()) {
    const client::Event next = std::move(events_.front());
    events_.pop_front();
    const client::Actions actions = membership_.step(next, ports_.now());
    ports_.on_step();
    carry_out(actions);
  }
  feeding_ = false;
}

void NodeDriver::carry_out(const client::Actions& actions) {
  for (const client::Action& action : actions) {
    std::visit([this](const auto& alternative) { act(alternative); }, action);
  }
}

void NodeDriver::request_stop(const ReceivedSignal& received) {
  const int signal = received.number;
  const bool first = stop_signal_ == 0;
  if (first) {
    stop_signal_ = signal;
    stop_reason_ = received_text(received);
    stops_all_nodes_ = received.all_nodes && nodes_ == Nodes::kSeveral;
  }
  if (has_group_) ports_.pass_stop_signal(signal);
  if (!first) {
    if (!ddprun::is_forced_stop(signal)) return;
    forced_stop_ = true;
  }
  if (end_) return;
  if (first && !has_group_) ports_.log_leaving(received);
  leave_waits_ = has_group_ && ports_.failure_is_pending();  // that is reported first
  if (!leave_waits_) leave_for_signal();
}

void NodeDriver::leave_for_signal() {
  leave(exit_code_of_signal(stop_signal_), stop_reason_, By::kStop);
}

void NodeDriver::leave_if_asked() {
  if (!std::exchange(leave_waits_, false)) return;
  leave_for_signal();
  if (forced_stop_) leave_for_signal();
}

// The second time means a forced stop, which an error after a signal, or the reverse, is not.
void NodeDriver::leave(int exit_code, const std::string& reason, By by) {
  if (std::exchange(leaving_, true) && !forced_stop_) return;
  const bool requested = by == By::kStop;
  feed(client::LeaveAsked{exit_code, reason, requested, requested && stops_all_nodes_});
}

void NodeDriver::fail(const Error& error) {
  leave(ports_.report_error(error), error.sentence);
}

void NodeDriver::fail_to_spawn(int exit_code, const std::string& reason) {
  leave(exit_code, reason);
}

void NodeDriver::group_over(Round round, const RoundResult& result) {
  has_group_ = false;
  // It holds what the next round needs here.
  if (const std::string alive = result.unkillable_worker(); !alive.empty()) {
    leave(kExitUnkillable, alive + " is still alive after SIGKILL");
  }
  if (std::string line = result.untold_death_line(); !line.empty()) {
    deferred_death_line_ = std::move(line);
  }
  feed(gone(round, result));
}

void NodeDriver::flush_deferred_death_line() {
  if (!deferred_death_line_.empty()) ports_.log_death(std::exchange(deferred_death_line_, {}));
}

void NodeDriver::act(const client::Connect& action) {
  const bool may_host = !membership_.joined() && !action.to;
  if (may_host && ports_.host_coordinator()) membership_.coordinator_is_here();
  ports_.connect(action.link, action.to);
}

void NodeDriver::act(const client::Coordinate& action) {
  const auto made = ports_.coordinate(action);
  if (!made) feed(client::Abdicated{made.error().sentence});
}

void NodeDriver::act(const client::Withdraw&) {
  ports_.withdraw_coordinator();
}

void NodeDriver::act(const client::CloseLink& action) {
  ports_.close_link(action.link);
}

void NodeDriver::act(const client::SendMessage& action) {
  ports_.send(action.link, action.message);
}

void NodeDriver::act(const client::OpenStore&) {
  const auto port = ports_.open_store();
  if (!port) return fail(port.error());
  feed(client::StoreOpened{*port});
}

void NodeDriver::act(const client::ServeStore& action) {
  const auto served = ports_.serve_store(action.round, action.peers);
  if (!served) fail(served.error());
}

void NodeDriver::act(const client::ReleaseStore& action) {
  ports_.release_store(action.round);
}

void NodeDriver::act(const client::CloseStore& action) {
  ports_.close_store(action.round);
}

void NodeDriver::act(const client::StartGroup& action) {
  const bool restarts = action.round.restarts > std::exchange(restarts_, action.round.restarts);
  if (nodes_ == Nodes::kSingle && restarts) {
    flush_deferred_death_line();
    ports_.log_restart(action.round.reason);
  }
  has_group_ = true;
  const auto started = ports_.start_group(action.round);
  if (started) return;
  has_group_ = false;
  fail(started.error());
  feed(client::GroupGone{action.round.stamp.number});
}

void NodeDriver::act(const client::StopGroup& action) {
  if (has_group_) ports_.stop_group(action);
}

void NodeDriver::act(const client::CheckHang& action) {
  if (has_group_) ports_.check_hang(action);
}

void NodeDriver::act(const client::ArmTimer& action) {
  ports_.arm_timer(action.deadline);
}

void NodeDriver::act(const client::Note& action) {
  if (nodes_ == Nodes::kSingle) return;  // its user reads of a round when the workers start
  flush_deferred_death_line();
  ports_.log_note(action.text);
}

void NodeDriver::act(const client::End& action) {
  end_ = action;
  ports_.end();
}

}  // namespace ddprun
