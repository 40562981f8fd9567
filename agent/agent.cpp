#include "agent/agent.hpp"

#include <spdlog/logger.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <random>
#include <utility>

#include "agent/core/kill_order.hpp"
#include "agent/core/node_report.hpp"
#include "agent/core/report.hpp"
#include "agent/core/verdict.hpp"
#include "agent/in_process_link.hpp"
#include "agent/log.hpp"
#include "base/version.hpp"
#include "rendezvous/client/connection.hpp"

namespace ddprun {

namespace asio = boost::asio;

namespace {

AgentId random_id() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::random_device random;
  std::string text;
  for (int digit = 0; digit < 32; ++digit) text += kDigits[random() % kDigits.size()];
  return AgentId(text);
}

AgentIdentity identify(const RunContext& context, const LocalCoordinator* local_coordinator) {
  using Coordinator = AgentIdentity::Coordinator;
  const bool here = local_coordinator != nullptr || !context.config().rendezvous;
  return {random_id(), context.hostname(), here ? Coordinator::kHere : Coordinator::kElsewhere};
}

std::unique_ptr<client::CoordinatorLink> make_link(asio::any_io_executor executor,
                                                   const LaunchConfig& config,
                                                   client::CoordinatorLink::Sink sink) {
  if (!config.rendezvous) {
    return std::make_unique<InProcessLink>(std::move(executor), config.run_id, std::move(sink));
  }
  const CoordinatorAddress& address = config.rendezvous->coordinator;
  return std::make_unique<client::Connections>(std::move(executor), address.host, address.port,
                                               std::move(sink));
}

void rethrow(const std::exception_ptr& bug) {
  if (bug) std::rethrow_exception(bug);
}

}  // namespace

Agent::Agent(asio::any_io_executor executor, AgentInputs inputs,
             std::unique_ptr<LocalCoordinator> local_coordinator,
             MakeLocalCoordinator make_local_coordinator)
    : executor_(executor),
      context_(std::move(inputs)),
      local_coordinator_(std::move(local_coordinator)),
      make_local_coordinator_(std::move(make_local_coordinator)),
      identity_(identify(context_, local_coordinator_.get())),
      membership_(membership_options(context_.config(), identity_), Clock::now()),
      link_(make_link(executor, context_.config(),
                      [this](const client::Event& event) { feed(event); })),
      store_(executor, context_.config(), local_coordinator_.get(),
             make_part_logger(context_.logger(), "STORE")),
      tick_(executor),
      ended_(executor, TimePoint::max()),
      settled_(executor, TimePoint::max()) {}

asio::awaitable<int> Agent::run() {
  const auto logs = co_await context_.open_logs();
  if (!logs) co_return context_.fail("START", logs.error());
  if (!single_node()) tell_start();
  feeding_ = true;
  carry_out(membership_.begin(Clock::now()));
  feed_queued();
  boost::system::error_code cancelled;
  while (!end_) {
    co_await ended_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
  }
  co_await link_->flush();
  tell_end(*end_);
  co_await settle();
  co_return end_->exit_code;
}

void Agent::request_stop(int signal) {
  const bool first = stop_signal_ == 0;
  if (first) stop_signal_ = signal;
  if (runner_) runner_->request_stop(signal);
  if (!first) {
    if (!is_forced_stop(signal)) return;
    force_stop_ = true;
    settled_.cancel();
  }
  if (end_) return;
  if (first && !runner_) context_.logger().info(leaving_line(signal));
  leave_waits_ = runner_ && runner_->outcome_is_untold();  // that is reported first
  if (!leave_waits_) leave_for_signal();
}

void Agent::leave_if_asked() {
  if (std::exchange(leave_waits_, false)) leave_for_signal();
}

void Agent::leave_for_signal() {
  leave(128 + stop_signal_, signal_name(stop_signal_) + " received");
}

void Agent::pass_on(int signal) {
  if (runner_) runner_->pass_on(signal);
}

void Agent::feed(client::Event event) {
  events_.push_back(std::move(event));
  if (!std::exchange(feeding_, true)) feed_queued();
}

void Agent::feed_queued() {
  while (!events_.empty()) {
    const client::Event next = std::move(events_.front());
    events_.pop_front();
    carry_out(membership_.step(next, Clock::now()));
  }
  feeding_ = false;
}

void Agent::carry_out(const client::Actions& actions) {
  for (const client::Action& action : actions) {
    std::visit([this](const auto& one) { act(one); }, action);
  }
}

void Agent::act(const client::Connect& action) {
  host_if_no_other_does();
  link_->connect(action.link);
}

// The port may have been in other hands when this process started: those of an earlier run that was
// still ending, for example.
void Agent::host_if_no_other_does() {
  if (local_coordinator_ != nullptr || !make_local_coordinator_ || membership_.joined()) return;
  auto made = make_local_coordinator_(executor_);
  if (!made || *made == nullptr) return;
  local_coordinator_ = std::move(*made);
  membership_.coordinator_is_here();
  context_.logger().info(
      run_note("no coordinator answered at this endpoint: this node runs the coordinator"));
}

void Agent::act(const client::CloseLink& action) {
  link_->close(action.link);
}

void Agent::act(const client::SendMessage& action) {
  link_->send(action.link, action.message);
}

void Agent::act(const client::OpenStore&) {
  const auto port = store_.open_next();
  if (port) return feed(client::StoreOpened{*port});
  own_error_told_ = true;
  leave(context_.fail(start_code_of(port.error().kind), port.error()), port.error().sentence);
}

void Agent::act(const client::ServeStore& action) {
  const auto served = store_.serve(action.round);
  if (served) return;
  own_error_told_ = true;
  leave(context_.fail(start_code_of(served.error().kind), served.error()), served.error().sentence);
}

void Agent::act(const client::ReleaseStore& action) {
  const Round round = action.round;
  store_.release(round, [this, round] { feed(client::StoreIdle{round}); });
}

void Agent::act(const client::CloseStore& action) {
  store_.close(action.round);
}

void Agent::act(const client::StartGroup& action) {
  const Round round = action.round.stamp.number;
  const bool restarts = action.round.restarts > std::exchange(restarts_, action.round.restarts);
  if (single_node() && restarts) {
    tell_waiting_death();
    context_.logger().info(restart_line(action.round.reason));
  }
  const auto served = store_.begin();
  if (!served) return fail_to_start(round, served.error());
  RoundInputs inputs = context_.prepare(facts_of(action.round, context_.config()));
  inputs.hooks = hooks_of(round, inputs.facts.first_rank);
  group_since_ = Clock::now();
  runner_ = std::make_shared<RoundRunner>(executor_, std::move(inputs));
  asio::co_spawn(executor_, run_group(runner_, round), rethrow);
}

void Agent::fail_to_start(Round round, const Error& error) {
  own_error_told_ = true;
  leave(context_.fail(start_code_of(error.kind), error), error.sentence);
  feed(client::GroupGone{round, protocol::Milliseconds(0), 0, 0});
}

RoundHooks Agent::hooks_of(Round round, Rank first_rank) {
  RoundHooks hooks;
  hooks.opened = [this, round] {
    if (single_node() && round == Round(1)) tell_start_of_single_node();
  };
  hooks.running = [this, round] {
    group_since_ = Clock::now();
    feed(client::GroupRunning{round});
  };
  hooks.failed = [this, round](const ExitRecord& first) {
    // Of its exit, not of the moment when its files were read: that tells who failed first.
    const Duration after = context_.started() + first.since_start - group_since_;
    feed(client::GroupFailed{round, {to_worker_exit(first, after)}});
    leave_if_asked();
  };
  // The next attempt would meet the same error: the node is no use to the run.
  hooks.spawn_failed = [this, first_rank](const SpawnFailed& failure) {
    own_error_told_ = true;
    leave(context_.fail_to_spawn(failure, first_rank), failure.error.sentence);
  };
  return hooks;
}

asio::awaitable<void> Agent::run_group(std::shared_ptr<RoundRunner> runner, Round round) {
  RoundResult result = co_await runner->run();
  last_ = std::move(result);
  runner_ = nullptr;
  on_group_over(round);
}

void Agent::on_group_over(Round round) {
  const RoundResult& result = *last_;
  if (result.state == GroupState::kSucceeded) {
    feed(client::GroupSucceeded{round});
    return leave_if_asked();
  }
  context_.tell_unkillable(result);
  if (!result.unkillable.empty()) {
    // It holds what the next round needs here.
    leave(1, who(result.unkillable.front(), context_.hostname()) + " is still alive after SIGKILL");
  }
  const ExitRecord* first = first_failure(result.exits);
  const bool untold = result.failure_told == RoundResult::Told::kNo;
  if (result.state == GroupState::kFailed && first != nullptr && untold) {
    death_ = death_line(*first, context_.hostname(), 0);
  }
  const auto took = std::chrono::duration_cast<protocol::Milliseconds>(result.stop_took);
  feed(client::GroupGone{round, took, result.killed, result.stopped});
}

void Agent::act(const client::StopGroup& action) {
  if (runner_) runner_->end(action.signal, action.grace);
}

void Agent::act(const client::ArmTimer& action) {
  tick_.expires_at(action.deadline);
  tick_.async_wait([this](const boost::system::error_code& why) {
    if (!why) feed(client::Tick{});
  });
}

void Agent::act(const client::Note& action) {
  if (single_node()) return;  // it is told of a round when its workers start
  tell_waiting_death();
  context_.logger().info(run_note(action.text));
  note_ = action.text;
}

void Agent::act(const client::End& action) {
  end_ = action;
  tick_.cancel();
  ended_.cancel();
}

void Agent::leave(int exit_code, const std::string& reason) {
  feed(client::LeaveAsked{exit_code, reason});
}

void Agent::tell_start() {
  const LaunchConfig& config = context_.config();
  NodeStartFacts facts;
  facts.version = kVersion;
  facts.run = config.run_id;
  facts.nodes_min = config.rendezvous->nodes_min;
  facts.nodes_max = config.rendezvous->nodes_max;
  facts.coordinator = to_text(config.rendezvous->coordinator);
  using Host = NodeStartFacts::Host;
  facts.host = local_coordinator_ != nullptr ? Host::kHere : Host::kElsewhere;
  facts.workers = config.workers.count;
  facts.log_dir = config.log.dir.empty() ? "" : context_.logs().base();
  facts.shutdown_timeout = config.stopping.shutdown_timeout;
  facts.max_restarts = config.stopping.max_restarts;
  context_.logger().info(node_start_line(facts));
}

void Agent::tell_start_of_single_node() {
  const LaunchConfig& config = context_.config();
  StartFacts facts;
  facts.version = kVersion;
  facts.run = config.run_id;
  facts.workers = config.workers.count;
  facts.store = store_.served_at();
  facts.log_dir = config.log.dir.empty() ? "" : context_.logs().run_directory();
  facts.shutdown_timeout = config.stopping.shutdown_timeout;
  facts.max_restarts = config.stopping.max_restarts;
  context_.logger().info(start_line(facts));
}

void Agent::tell_waiting_death() {
  if (!death_.empty()) context_.logger().warn(std::exchange(death_, {}));
}

}  // namespace ddprun
