#include "agent/node.hpp"

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
#include "agent/log.hpp"
#include "base/version.hpp"

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

AgentIdentity identify(const RunContext& context, const Companion* companion) {
  using Coordinator = AgentIdentity::Coordinator;
  return {random_id(), context.hostname(),
          companion != nullptr ? Coordinator::kHere : Coordinator::kElsewhere};
}

void rethrow(const std::exception_ptr& bug) {
  if (bug) std::rethrow_exception(bug);
}

}  // namespace

NodeAgent::NodeAgent(asio::any_io_executor executor, AgentInputs inputs,
                     std::unique_ptr<Companion> companion, MakeCompanion make_companion)
    : executor_(executor),
      context_(std::move(inputs)),
      companion_(std::move(companion)),
      make_companion_(std::move(make_companion)),
      identity_(identify(context_, companion_.get())),
      membership_(membership_options(context_.config(), identity_), Clock::now()),
      connections_(executor, context_.config().rendezvous->coordinator.host,
                   context_.config().rendezvous->coordinator.port,
                   [this](const client::Event& event) { feed(event); }),
      store_(executor, context_.config(), companion_.get(),
             make_part_logger(context_.logger(), "STORE")),
      tick_(executor),
      ended_(executor, TimePoint::max()),
      settled_(executor, TimePoint::max()) {}

asio::awaitable<int> NodeAgent::run() {
  const auto logs = co_await context_.open_logs();
  if (!logs) co_return context_.fail("START", logs.error());
  tell_start();
  feeding_ = true;
  carry_out(membership_.begin(Clock::now()));
  feed_queued();
  boost::system::error_code cancelled;
  while (!end_) {
    co_await ended_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
  }
  co_await connections_.flush();
  tell_end(*end_);
  co_await settle();
  co_return end_->exit_code;
}

void NodeAgent::request_stop(int signal) {
  const bool first = stop_signal_ == 0;
  if (first) stop_signal_ = signal;
  if (runner_) runner_->request_stop(signal);
  if (!first) {
    if (!asks_for_haste(signal)) return;
    in_haste_ = true;
    settled_.cancel();
  }
  if (end_) return;
  if (first && !runner_) context_.logger().info(leaving_line(signal));
  if (runner_ && runner_->succeeded()) return;  // that is reported first: see on_group_over()
  leave_for_signal();
}

void NodeAgent::leave_for_signal() {
  leave(128 + stop_signal_, signal_name(stop_signal_) + " received");
}

void NodeAgent::pass_on(int signal) {
  if (runner_) runner_->pass_on(signal);
}

void NodeAgent::feed(client::Event event) {
  events_.push_back(std::move(event));
  if (!std::exchange(feeding_, true)) feed_queued();
}

void NodeAgent::feed_queued() {
  while (!events_.empty()) {
    const client::Event next = std::move(events_.front());
    events_.pop_front();
    carry_out(membership_.step(next, Clock::now()));
  }
  feeding_ = false;
}

void NodeAgent::carry_out(const client::Actions& actions) {
  for (const client::Action& action : actions) {
    std::visit([this](const auto& one) { act(one); }, action);
  }
}

void NodeAgent::act(const client::Connect& action) {
  host_if_nobody_does();
  connections_.connect(action.link);
}

// The port may have been in other hands when this process started: those of an earlier run that was
// still ending, for example.
void NodeAgent::host_if_nobody_does() {
  if (companion_ != nullptr || !make_companion_ || membership_.joined()) return;
  auto made = make_companion_(executor_);
  if (!made || *made == nullptr) return;
  companion_ = std::move(*made);
  membership_.coordinator_is_here();
  context_.logger().info(run_note("nobody answered there: this node runs the coordinator"));
}

void NodeAgent::act(const client::CloseLink& action) {
  connections_.close(action.link);
}

void NodeAgent::act(const client::SendMessage& action) {
  connections_.send(action.link, action.message);
}

void NodeAgent::act(const client::OpenStore&) {
  const auto port = store_.open_next();
  if (port) return feed(client::StoreOpened{*port});
  own_error_told_ = true;
  leave(context_.fail(start_code_of(port.error().kind), port.error()), port.error().sentence);
}

void NodeAgent::act(const client::ServeStore& action) {
  const auto served = store_.serve(action.round);
  if (served) return;
  own_error_told_ = true;
  leave(context_.fail(start_code_of(served.error().kind), served.error()), served.error().sentence);
}

void NodeAgent::act(const client::ReleaseStore& action) {
  const Round round = action.round;
  store_.release(round, [this, round] { feed(client::StoreIdle{round}); });
}

void NodeAgent::act(const client::CloseStore& action) {
  store_.close(action.round);
}

void NodeAgent::act(const client::StartGroup& action) {
  const Round round = action.round.stamp.number;
  RoundInputs inputs = context_.prepare(facts_of(action.round, context_.config()));
  inputs.hooks = hooks_of(round, inputs.facts.first_rank);
  group_since_ = Clock::now();
  runner_ = std::make_shared<RoundRunner>(executor_, std::move(inputs));
  asio::co_spawn(executor_, run_group(runner_, round), rethrow);
}

RoundHooks NodeAgent::hooks_of(Round round, Rank first_rank) {
  RoundHooks hooks;
  hooks.running = [this, round] {
    group_since_ = Clock::now();
    feed(client::GroupRunning{round});
  };
  hooks.failed = [this, round](const ExitRecord& first) {
    feed(client::GroupFailed{round, {to_worker_exit(first, Clock::now() - group_since_)}});
  };
  // The next attempt would meet the same error: the node is no use to the run.
  hooks.spawn_failed = [this, first_rank](const SpawnFailed& failure) {
    own_error_told_ = true;
    leave(context_.fail_to_spawn(failure, first_rank), failure.error.sentence);
  };
  return hooks;
}

asio::awaitable<void> NodeAgent::run_group(std::shared_ptr<RoundRunner> runner, Round round) {
  RoundResult result = co_await runner->run();
  last_ = std::move(result);
  runner_ = nullptr;
  on_group_over(round);
}

void NodeAgent::on_group_over(Round round) {
  const RoundResult& result = *last_;
  if (result.state == GroupState::kSucceeded) {
    feed(client::GroupSucceeded{round});
    if (stop_signal_ != 0) leave_for_signal();
    return;
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

void NodeAgent::act(const client::StopGroup& action) {
  if (runner_) runner_->end(action.signal, action.grace);
}

void NodeAgent::act(const client::ArmTimer& action) {
  tick_.expires_at(action.deadline);
  tick_.async_wait([this](const boost::system::error_code& why) {
    if (!why) feed(client::Tick{});
  });
}

void NodeAgent::act(const client::Note& action) {
  tell_waiting_death();
  context_.logger().info(run_note(action.text));
  note_ = action.text;
}

void NodeAgent::act(const client::End& action) {
  end_ = action;
  tick_.cancel();
  ended_.cancel();
}

void NodeAgent::leave(int exit_code, const std::string& reason) {
  feed(client::LeaveAsked{exit_code, reason});
}

void NodeAgent::tell_start() {
  const LaunchConfig& config = context_.config();
  NodeStartFacts facts;
  facts.version = kVersion;
  facts.run = config.run_id;
  facts.nodes_min = config.rendezvous->nodes_min;
  facts.nodes_max = config.rendezvous->nodes_max;
  facts.coordinator = to_text(config.rendezvous->coordinator);
  using Host = NodeStartFacts::Host;
  facts.host = companion_ != nullptr ? Host::kHere : Host::kElsewhere;
  facts.workers = config.workers;
  facts.log_dir = config.log.dir.empty() ? "" : context_.logs().base();
  facts.shutdown_timeout = config.shutdown_timeout;
  facts.max_restarts = config.max_restarts;
  context_.logger().info(node_start_line(facts));
}

void NodeAgent::tell_waiting_death() {
  if (!death_.empty()) context_.logger().warn(std::exchange(death_, {}));
}

}  // namespace ddprun
