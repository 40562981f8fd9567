// NodeDriver: the order of events on one node. It feeds client::Membership one event at a time,
// carries out its actions through NodePorts, and knows the ways out: a stop signal, a second one,
// an error of this node's own, the end of the run. Pure but for its ports; so the simulator runs
// the same glue as the agent. Thread rule: one thread. Ownership: the ports outlive it.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "agent/node/ports.hpp"
#include "agent/node/round_result.hpp"
#include "base/exit_code.hpp"
#include "rendezvous/client/membership.hpp"

namespace ddprun {

class NodeDriver {
 public:
  enum class Nodes { kSingle, kSeveral };
  NodeDriver(NodePorts& ports, client::MembershipOptions options, Nodes nodes);

  /// Once, before any event.
  void begin();
  /// Takes an event, or queues it while another is taken: an action may cause the next event.
  void feed(client::Event event);

  /// A signal that ends this node's part in the run: the workers get it, the coordinator learns of
  /// it. The second one kills at once, and no longer waits for other nodes.
  void request_stop(const ReceivedSignal& received);
  /// A signal that ends nothing: the workers get it once, those of all nodes if it is for them.
  void pass_on(client::SignalCame came) { feed(std::move(came)); }
  /// This node leaves the run for a reason of its own, which the user has read.
  enum class By { kItself, kStop };
  void leave(int exit_code, const std::string& reason, By by = By::kItself);

  /// A worker could not be started; the user has read why. Nor could it in the next round.
  void fail_to_spawn(int exit_code, const std::string& reason);
  /// Nothing of the group is left.
  void group_over(Round round, const RoundResult& result);

  /// Logs a failure whose line waited for the report of the run, which would have contained it.
  void flush_deferred_death_line();

  [[nodiscard]] const client::Membership& membership() const { return membership_; }
  /// Whether no event is being taken.
  [[nodiscard]] bool idle() const { return !feeding_; }
  [[nodiscard]] const std::optional<client::End>& end() const { return end_; }
  /// The first one; 0: none.
  [[nodiscard]] int stop_signal() const { return stop_signal_; }
  [[nodiscard]] bool is_forced_stop() const { return forced_stop_; }
  /// Whether a coordinator in this process ends the run on every node: it was stopped.
  [[nodiscard]] bool ends_run() const { return stop_signal_ != 0 && end_ && !end_->done; }
  /// The code of the run then. That of this node may be 0, of a success that is its own alone.
  [[nodiscard]] int run_exit_code() const {
    return end_->exit_code == 0 ? exit_code_of_signal(stop_signal_) : end_->exit_code;
  }
  [[nodiscard]] Round round() const { return membership_.round(); }
  [[nodiscard]] bool has_coordinator() const { return membership_.has_coordinator(); }
  [[nodiscard]] const std::vector<client::Place>& former_coordinators() const {
    return membership_.former_coordinators();
  }
  /// This node may coordinate the run: see Membership::stand_by().
  void stand_by(std::uint16_t port) { membership_.stand_by(port); }
  /// As the last round has them.
  [[nodiscard]] RestartCount restarts() const { return restarts_; }

 private:
  void feed_queued();
  void carry_out(const client::Actions& actions);
  void act(const client::Connect& action);
  void act(const client::Coordinate& action);
  void act(const client::Withdraw& action);
  void act(const client::CloseLink& action);
  void act(const client::SendMessage& action);
  void act(const client::OpenStore& action);
  void act(const client::ServeStore& action);
  void act(const client::ReleaseStore& action);
  void act(const client::CloseStore& action);
  void act(const client::StartGroup& action);
  void act(const client::StopGroup& action);
  void act(const client::ArmTimer& action);
  void act(const client::Note& action);
  void act(const client::DeliverSignal& action) { ports_.deliver_signal(action); }
  void act(const client::CheckHang& action);
  void act(const client::End& action);
  void fail(const Error& error);
  void leave_for_signal();
  void leave_if_asked();

  NodePorts& ports_;
  Nodes nodes_;
  client::Membership membership_;
  std::deque<client::Event> events_;
  bool feeding_ = false;
  bool has_group_ = false;
  RestartCount restarts_{0};
  int stop_signal_ = 0;
  bool stops_all_nodes_ = false;
  std::string stop_reason_;
  bool forced_stop_ = false;
  bool leaving_ = false;
  bool leave_waits_ = false;  // the failure of the round is reported first
  std::string deferred_death_line_;
  std::optional<client::End> end_;
};

}  // namespace ddprun
