// Agent: this node's part in a run, of one node or of several: it carries out what Node orders,
// with sockets, processes and consoles. Node, with its Membership, and the coordinator decide which
// round runs, who is in it and how the run ends. Thread rule: the io_context's thread. Ownership:
// config, environment and logger outlive it.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "agent/control/request.hpp"
#include "agent/control/status.hpp"
#include "agent/coordinate/coordinator_port.hpp"
#include "agent/coordinate/elected_seat.hpp"
#include "agent/coordinate/endpoint_seat.hpp"
#include "agent/coordinate/link_messages.hpp"
#include "agent/coordinate/node_store.hpp"
#include "agent/events/metrics.hpp"
#include "agent/events/run_events.hpp"
#include "agent/node/node.hpp"
#include "agent/node/pump.hpp"
#include "agent/run_context.hpp"
#include "agent/workers/round.hpp"
#include "base/clock.hpp"
#include "base/quota.hpp"
#include "rendezvous/client/connection.hpp"

namespace ddprun {

// Notes about signals that are passed on: so many at once, then one per interval; the others are
// counted.
inline constexpr int kSignalLinesMax = 8;
inline constexpr Duration kSignalLineInterval = std::chrono::minutes(1);

class Agent : private SeatUser {
 public:
  /// `coordinator` is that of the run, if it is in this process; else null, and `make_coordinator`
  /// (may be empty) is asked again as long as no coordinator answers.
  /// `open_coordinator` is for the case that this node is elected or follows a coordinator that was
  /// lost, and may be empty if neither happens.
  Agent(boost::asio::any_io_executor executor, AgentInputs inputs, Coordinator coordinator,
        MakeCoordinator make_coordinator, OpenCoordinator open_coordinator);

  /// From the first attempt to reach the coordinator to the end of the run; completes with the exit
  /// code when everything is said and, where the coordinator is here, every other node has gone.
  /// The waits for nodes and for the coordinator have the deadlines of --rdzv-conf.
  /// Do not cancel run(): request_stop() ends it. A cancelled run() throws at its next wait without
  /// stopping the workers, which the kernel then kills when this process ends.
  [[nodiscard]] boost::asio::awaitable<int> run();
  /// A signal that ends this node's part: the workers get it, the coordinator learns of it. The
  /// second one kills at once, and no longer waits for other nodes.
  void request_stop(const ReceivedSignal& received);
  /// A signal that does not end the run: the workers get it once, those of all nodes if it
  /// is for them. Returns what was done, in words.
  std::string pass_on(client::SignalCame came);
  /// The same for `ddprun signal`: refused if a rank here would end by it, unless forced.
  [[nodiscard]] Result<std::string> signal_ranks(client::SignalCame came);
  /// Ctrl-Z: stops the workers and this process, until a SIGCONT continues both.
  void pause(const ReceivedSignal& received);
  [[nodiscard]] MetricsFacts metrics_facts() const;
  /// For commands (agent/control).
  [[nodiscard]] control::NodeStatus status();
  /// What became of the run, once run() has completed.
  [[nodiscard]] control::Outcome outcome() const;
  /// Saves the stacks of the ranks here. Returns where the ranks are, and the file; one at a time.
  [[nodiscard]] boost::asio::awaitable<std::string> save_stacks();

 private:
  friend class Pump<Node, node::Event, Agent>;
  [[nodiscard]] TimePoint now() const { return Clock::now(); }
  void feed(client::Event event) override { node_.feed(std::move(event)); }
  /// An error of this node's own: it leaves the run.
  void fail(const Error& error) override;
  [[nodiscard]] int report_error(const Error& error);
  void act(const client::Connect& action);
  void act(const client::Coordinate& action);
  void act(const client::Withdraw&) { seat_->withdraw(); }
  void act(const client::CloseLink& action) { link_->close(action.link); }
  void act(const client::SendMessage& action) { link_->send(action.link, action.message); }
  void act(const client::OpenStore& action);
  void act(const client::ServeStore& action);
  void act(const client::ReleaseStore& action);
  void act(const client::CloseStore& action) { store_.close(action.round); }
  void act(const client::StartGroup& action);
  void act(const client::StopGroup& action);
  void act(const client::ArmTimer& action);
  void act(const client::DeliverSignal& deliver);
  void act(const client::CheckHang& action);
  void act(const client::End& action);
  void act(const node::PassStopSignal& action);
  void act(const node::Stepped&) { note_state(); }
  void act(const node::LogNote& action);
  void act(const node::LogDeath& action) { log_death(action.line); }
  void act(const node::LogRestart& action);
  void act(const node::LogLeaving& action);
  [[nodiscard]] Result<void> start_group(const protocol::StartRound& start);
  void log_death(const std::string& line);

  void coordinator_at(const std::optional<CoordinatorAddress>& where, bool here,
                      const std::string& why) override;
  [[nodiscard]] bool has_coordinator() const override {
    return node_->membership().has_coordinator();
  }
  [[nodiscard]] std::vector<client::Place> former_coordinators() const override {
    return node_->membership().former_coordinators();
  }
  void joins_other(const CoordinatorAddress& other) override;
  void seat_note(const std::string& text) override;
  /// Null: it is elsewhere.
  [[nodiscard]] coordinator::Server* coordinator_here() const {
    if (elected_) return elected_->here();
    return seat_ ? seat_->here() : nullptr;
  }

  void take(const client::Event& event);
  [[nodiscard]] bool waits_as_spare_node(const client::Event& event) const;
  void show_wait(const client::Event& event);
  void note_state();
  [[nodiscard]] RoundHooks hooks_of(Round round, Rank first_rank);
  void tell_of_round(client::Event event);
  [[nodiscard]] boost::asio::awaitable<void> run_group(std::shared_ptr<RoundRunner> runner,
                                                       Round round);
  void log_start();
  void log_placement();
  void tell_that_it_started();
  [[nodiscard]] boost::asio::awaitable<void> pause_all(ReceivedSignal received);
  [[nodiscard]] int stop_workers();
  void continue_workers(Duration stopped);
  void fail_to_spawn(OwnError error, const std::string& sentence);
  [[nodiscard]] bool single_node() const { return !context_.config().rendezvous; }

  // agent_end.cpp
  void report_end(const client::End& end);
  void record_end(const client::End& end);
  [[nodiscard]] TorchEvents::End torch_end(const RunEnd& end) const;
  void report_success(const client::End& end);
  void report_failure(const protocol::Done& done);
  void report_left(const client::End& end);
  void drop_late(bool own);
  void say_late();
  void arm_late();
  void report_own_error();
  [[nodiscard]] bool is_own(const WorkerExit& first) const;
  [[nodiscard]] bool prints_whole_report(const protocol::Done& done) const;
  [[nodiscard]] boost::asio::awaitable<void> settle();
  void shut_down_coordinator();
  [[nodiscard]] boost::asio::awaitable<void> settle_elected();
  [[nodiscard]] boost::asio::awaitable<void> wait_until_settled(coordinator::Server& coordinator);

  boost::asio::any_io_executor executor_;
  RunContext context_;
  AgentIdentity identity_;
  Pump<Node, node::Event, Agent> node_;
  LinkEvents link_events_;
  std::shared_ptr<client::CoordinatorLink> link_;
  bool is_aimed_ = false;  // elsewhere than at the endpoint
  CoordinatorAddress endpoint_{};
  // A run of several nodes has one of the two.
  std::unique_ptr<EndpointSeat> seat_;
  std::unique_ptr<ElectedSeat> elected_;  // where etcd says which node coordinates
  NodeStore store_;
  boost::asio::steady_timer tick_;
  boost::asio::steady_timer ended_;    // never expires by itself: cancelled by end()
  boost::asio::steady_timer settled_;  // the same, when the coordinator here has no more to do
  bool stays_ = false;  // as the coordinator of the others: a stop signal ends the run

  std::shared_ptr<RoundRunner> runner_;  // of the group that lives; else null
  std::optional<RoundResult> last_;      // of the last group that is over
  CarriedWorkers carried_;               // between two groups
  std::string note_;                     // the last one that was logged
  ReceivedSignal stopped_by_;            // the first stop signal; number 0: none came
  bool ranks_are_stopped_ = false;       // it came while ranks lived
  std::string signal_note_;              // of the last signal that was passed on
  LogQuota signal_lines_{kSignalLinesMax, kSignalLineInterval};
  bool own_error_reported_ = false;
  bool placement_logged_ = false;
  std::optional<OwnError> own_error_{};  // reported when all is over here
  int group_rank_ = -1;                  // in the last round
  int nodes_ = 0;                        // of that round
  bool saves_stacks_ = false;
  bool pauses_ = false;
  // Of several nodes, where the report that is to come says the same: what is said if it does not
  // come soon.
  bool failure_known_ = false;  // of the run
  std::string late_note_;
  std::string late_death_;
  boost::asio::steady_timer late_;
  std::optional<RendezvousWait> rendezvous_wait_{};  // for the line on a terminal
  bool told_that_it_started_ = false;
  /// Of the workers here, for commands.
  struct State {
    Round round{0};
    std::string_view name;  // of a literal
    TimePoint since;
  };
  std::optional<State> state_{};
};

}  // namespace ddprun
