// Agent: this node's part of a run, of one node or of several. The shell around client::Membership:
// it carries out its actions on link, store, workers and console, and feeds back what happens.
// Which round runs, who is in it and how the run ends is decided by Membership and the coordinator.
// Thread rule: the io_context's thread. Ownership: config, environment and logger outlive it.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "agent/link_messages.hpp"
#include "agent/local_coordinator.hpp"
#include "agent/node_store.hpp"
#include "agent/round.hpp"
#include "agent/run_context.hpp"
#include "rendezvous/client/coordinator_link.hpp"
#include "rendezvous/client/membership.hpp"

namespace ddprun {

class Agent {
 public:
  /// `local_coordinator` is the coordinator, if it runs in this process; else null, and
  /// `make_local_coordinator` (may be empty) is asked again as long as no coordinator answers.
  Agent(boost::asio::any_io_executor executor, AgentInputs inputs,
        std::unique_ptr<LocalCoordinator> local_coordinator,
        MakeLocalCoordinator make_local_coordinator);

  /// From the first attempt to reach the coordinator to the end of the run; completes with the exit
  /// code when everything is said and, where the coordinator is here, every other node has gone.
  /// The waits for nodes and for the coordinator have the deadlines of --rdzv-conf.
  /// Do not cancel run(): request_stop() ends it. A cancelled run() throws at its next wait without
  /// stopping the workers, which the kernel then kills when this process ends.
  [[nodiscard]] boost::asio::awaitable<int> run();
  /// A signal that ends this node's part: the workers get it, the coordinator is told. The second
  /// one kills at once, and no longer waits for other nodes.
  void request_stop(int signal);
  void pass_on(int signal);

 private:
  // Events go through a queue: carrying out an action may cause the next event.
  void feed(client::Event event);
  void feed_queued();
  void carry_out(const client::Actions& actions);
  void act(const client::Connect& action);
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
  void act(const client::End& action);

  void fail_to_start(Round round, const Error& error);
  [[nodiscard]] RoundHooks hooks_of(Round round, Rank first_rank);
  [[nodiscard]] boost::asio::awaitable<void> run_group(std::shared_ptr<RoundRunner> runner,
                                                       Round round);
  void on_group_over(Round round);
  void leave(int exit_code, const std::string& reason);
  void leave_for_signal();
  void leave_if_asked();
  void host_if_no_other_does();
  void tell_start();
  void tell_start_of_single_node();
  [[nodiscard]] bool single_node() const { return !context_.config().rendezvous; }
  void tell_waiting_death();

  // node_end.cpp
  void tell_end(const client::End& end);
  void tell_success(const client::End& end);
  void tell_failure(const protocol::Done& done);
  void tell_left(const client::End& end);
  [[nodiscard]] const ExitRecord* own_exit(const protocol::WorkerExit& failure) const;
  [[nodiscard]] boost::asio::awaitable<void> settle();

  boost::asio::any_io_executor executor_;
  RunContext context_;
  std::unique_ptr<LocalCoordinator> local_coordinator_;  // null: the coordinator is elsewhere
  MakeLocalCoordinator make_local_coordinator_;
  AgentIdentity identity_;
  client::Membership membership_;
  std::unique_ptr<client::CoordinatorLink> link_;
  NodeStore store_;
  boost::asio::steady_timer tick_;
  boost::asio::steady_timer ended_;    // never expires by itself: cancelled by End
  boost::asio::steady_timer settled_;  // the same, when the coordinator here has no more to do
  std::deque<client::Event> events_;
  bool feeding_ = false;

  std::shared_ptr<RoundRunner> runner_;  // of the group that lives; else null
  TimePoint group_since_{};              // when its workers run; before that, when it began
  std::optional<RoundResult> last_;      // of the last group that is over
  RestartCount restarts_{0};             // as the last round was told
  std::string death_;                    // a death that the run's report may make superfluous
  std::string note_;                     // the last one that was told
  int stop_signal_ = 0;                  // the first one
  bool leave_waits_ = false;             // the outcome of the round is reported first
  bool force_stop_ = false;              // stopped a second time
  bool own_error_told_ = false;
  std::optional<client::End> end_;
};

}  // namespace ddprun
