// Node: the order of events on one node. It feeds client::Membership one event at a time and orders
// what follows, and knows the ways out: a stop signal, a second one, an error of this node's own,
// the end of the run. Pure: takes an event and the time, returns what to do; so the simulators run
// the same code as the agent. Ownership: the shell owns one.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "agent/config/received_signal.hpp"
#include "agent/node/local_round_events.hpp"
#include "base/clock.hpp"
#include "base/exit_status.hpp"
#include "rendezvous/client/membership.hpp"

namespace ddprun {

namespace node {

/// Once, before any other event.
struct Begin {};
/// A signal that ends this node's part in the run: the workers get it, the coordinator learns of
/// it. The second one kills at once, and no longer waits for other nodes.
struct StopAsked {
  ReceivedSignal received;
  /// A worker has failed, and GroupFailed is still to come: that is reported first.
  bool failure_is_pending = false;
};
/// This node leaves the run for a reason of its own, which the user has read: an error, or a worker
/// that could not be started, nor could be in the next round.
struct Failed {
  int exit_code = 1;
  std::string reason{};
};
/// The workers of StartGroup were not started, for the reason of a Failed that came before.
struct NotStarted {
  Round round;
};
/// Nothing of the group is left.
struct GroupOver {
  Round round;
  RoundResult result;
};

/// What the membership takes comes as it is: LinkUp, LinkDown, Incoming, StoreOpened (of
/// OpenStore), StoreIdle (of ReleaseStore), what local::Tell has, GroupQuiet, SignalCame, Tick (of
/// ArmTimer), and what is known of other coordinators.
using Event = std::variant<Begin, client::Event, StopAsked, Failed, NotStarted, GroupOver>;

/// ddprun got this stop signal: so do the workers, and a second one kills them.
struct PassStopSignal {
  int signal = 0;
};
/// The membership took an event: for observers, before what follows from it.
struct Stepped {
  std::array<std::string_view, 4> states{};
};

// Lines for the user.
struct LogNote {
  std::string text;
};
/// A failure on this node that is in no report.
struct LogDeath {
  std::string line;
};
/// A single node starts its workers again.
struct LogRestart {
  std::string reason;
};
/// A stop signal came while no worker runs.
struct LogLeaving {
  ReceivedSignal received;
};

/// Connect comes before each attempt: as long as no coordinator has answered, the process may
/// become its host. After Coordinate Abdicated follows if it gets no majority. OpenStore,
/// ServeStore and StartGroup may fail, which is an error of this node. StopGroup, PassStopSignal
/// and CheckHang come only while a group lives. End: nothing is left to do.
using Action =
    std::variant<client::Connect, client::Coordinate, client::Withdraw, client::CloseLink,
                 client::SendMessage, client::OpenStore, client::ServeStore, client::ReleaseStore,
                 client::CloseStore, client::StartGroup, client::StopGroup, client::ArmTimer,
                 client::DeliverSignal, client::CheckHang, client::End, PassStopSignal, Stepped,
                 LogNote, LogDeath, LogRestart, LogLeaving>;
using Actions = std::vector<Action>;

}  // namespace node

class Node {
 public:
  enum class Nodes { kSingle, kSeveral };
  Node(client::MembershipOptions options, Nodes nodes, TimePoint now);

  [[nodiscard]] node::Actions step(const node::Event& event, TimePoint now);

  /// The process has become the host of the coordinator: the next hello says so.
  void coordinator_is_here() { membership_.coordinator_is_here(); }
  /// This node may coordinate the run: see Membership::stand_by().
  void stand_by(std::uint16_t port) { membership_.stand_by(port); }
  /// A failure whose line waited for the report of the run, which would have contained it.
  [[nodiscard]] std::string take_deferred_death_line() {
    return std::exchange(deferred_death_line_, {});
  }

  [[nodiscard]] const client::Membership& membership() const { return membership_; }
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
  /// As the last round has them.
  [[nodiscard]] RestartCount restarts() const { return restarts_; }

 private:
  void on(const node::Begin&) { carry_out(membership_.begin(now_)); }
  void on(const client::Event& event);
  void on(const node::StopAsked& event);
  void on(const node::Failed& event) { leave(event.exit_code, event.reason, By::kItself); }
  void on(const node::NotStarted& event);
  void on(const node::GroupOver& event);
  void act(const client::StartGroup& action);
  void act(const client::StopGroup& action);
  void act(const client::CheckHang& action);
  void act(const client::Note& action);
  void act(const client::End& action);
  /// The shell does what the membership orders.
  template <class Action>
  void act(const Action& action) {
    actions_.emplace_back(action);
  }
  void feed(const client::Event& event);
  void carry_out(const client::Actions& actions);
  enum class By { kItself, kStop };
  void leave(int exit_code, const std::string& reason, By by);
  void leave_for_signal() { leave(exit_code_of_signal(stop_signal_), stop_reason_, By::kStop); }
  void leave_if_asked();
  void flush_deferred_death_line();

  Nodes nodes_;
  client::Membership membership_;
  TimePoint now_;
  node::Actions actions_{};
  bool has_group_ = false;
  RestartCount restarts_{0};
  int stop_signal_ = 0;
  bool stops_all_nodes_ = false;
  std::string stop_reason_{};
  bool forced_stop_ = false;
  bool leaving_ = false;
  bool leave_waits_ = false;  // the failure of the round is reported first
  std::string deferred_death_line_{};
  std::optional<client::End> end_{};
};

}  // namespace ddprun
