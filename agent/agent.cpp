#include "agent/agent.hpp"

#include <spdlog/logger.h>

#include <utility>

#include "agent/core/report.hpp"
#include "agent/core/verdict.hpp"
#include "agent/log.hpp"
#include "base/assert.hpp"
#include "base/version.hpp"

namespace ddprun {

namespace asio = boost::asio;

Agent::Agent(asio::any_io_executor executor, AgentInputs inputs)
    : executor_(executor),
      context_(std::move(inputs)),
      budget_{RestartCount(0), context_.config().max_restarts} {}

asio::awaitable<int> Agent::run() {
  const auto logs = co_await context_.open_logs();
  if (!logs) co_return context_.fail("START", logs.error());
  Next next = Next::kAnotherRound;
  while (next == Next::kAnotherRound) {
    const LaunchConfig& config = context_.config();
    auto store = RoundStore::listen(executor_, config, config.master_port,
                                    make_part_logger(context_.logger(), "STORE"));
    if (store) {
      const auto served = store->serve();
      if (!served) store = served.error();
    }
    if (!store) co_return context_.fail(start_code_of(store.error().kind), store.error());
    RoundInputs inputs = prepare(*store);
    const RoundResult result = co_await run_round(std::move(inputs));
    store->close();
    next = after(result);
  }
  co_return exit_code_;
}

RoundInputs Agent::prepare(const RoundStore& store) {
  const LaunchConfig& config = context_.config();
  RoundFacts facts;
  facts.round = round_;
  facts.restarts = budget_.used;
  facts.world = facts.role_world = WorldSize(config.workers);
  facts.master_addr = config.master_addr;
  facts.master_port = store.port();
  RoundInputs inputs = context_.prepare(std::move(facts));
  inputs.hooks.opened = [this, &store] {
    if (round_ == Round(1)) tell_start(store);
  };
  return inputs;
}

asio::awaitable<RoundResult> Agent::run_round(RoundInputs inputs) {
  runner_ = std::make_shared<RoundRunner>(executor_, std::move(inputs));
  if (stop_signal_ != 0) runner_->request_stop(stop_signal_);
  RoundResult result = co_await runner_->run();
  runner_ = nullptr;
  co_return result;
}

void Agent::request_stop(int signal) {
  if (stop_signal_ == 0) stop_signal_ = signal;
  if (runner_) runner_->request_stop(signal);
}

void Agent::pass_on(int signal) {
  if (runner_) runner_->pass_on(signal);
}

Agent::Next Agent::after(const RoundResult& result) {
  switch (result.state) {
    case GroupState::kSucceeded:
      context_.logger().info(
          done_line(context_.config().workers, context_.since_start(), budget_.used));
      context_.logs().discard();
      exit_code_ = 0;
      return Next::kEnd;
    case GroupState::kStopped:
      finish_stopped(result);
      return Next::kEnd;
    default:
      return after_failure(result);
  }
}

Agent::Next Agent::after_failure(const RoundResult& result) {
  RoundFailure failure = RoundFailure::kWorkerFailed;
  if (result.spawn_failure) failure = RoundFailure::kSpawnFailed;
  if (!result.unkillable.empty()) failure = RoundFailure::kUnkillable;
  const RestartDecision decision = decide_restart(budget_, failure);
  const bool stopped = decision.next == RestartDecision::Next::kRestart && stop_signal_ != 0;
  if (stopped || decision.next == RestartDecision::Next::kGiveUp) {
    finish_failed(result, stopped ? "not restarted: " + signal_name(stop_signal_) + " received"
                                  : decision.reason);
    return Next::kEnd;
  }
  const ExitRecord* first = first_failure(result.exits);
  DDPRUN_ASSERT(first != nullptr);
  if (result.failure_told == RoundResult::Told::kNo) {
    context_.logger().warn(death_line(*first, context_.hostname(), 0));
  }
  budget_.used = decision.used;
  round_ = Round(round_.value() + 1);
  context_.logger().info(restart_line(decision, round_));
  return Next::kAnotherRound;
}

void Agent::finish_stopped(const RoundResult& result) {
  context_.tell_unkillable(result);
  context_.logger().info(stopped_line(stop_signal_, result.stop_facts()));
  context_.leave_own_error("ddprun was stopped by " + signal_name(stop_signal_));
  context_.logs().discard_if_empty();
  exit_code_ = 128 + stop_signal_;
}

void Agent::finish_failed(const RoundResult& result, const std::string& why_no_restart) {
  context_.tell_unkillable(result);
  if (result.spawn_failure) {
    exit_code_ = context_.fail_to_spawn(*result.spawn_failure, Rank(0));
    return context_.logs().discard_if_empty();
  }
  const ExitRecord* first = first_failure(result.exits);
  DDPRUN_ASSERT(first != nullptr);
  FailureFacts facts = facts_of(*first, context_.hostname());
  facts.round = round_;
  facts.stopped = result.stopped;
  facts.killed = result.killed;
  facts.stop_took = result.stop_took;
  if (budget_.max > 0 || !result.unkillable.empty()) facts.next = why_no_restart;
  context_.pass_error_up(*first);
  context_.logger().error(failure_report(facts));
  context_.logs().discard_if_empty();
  exit_code_ = first->status.shell_code();
}

void Agent::tell_start(const RoundStore& store) {
  const LaunchConfig& config = context_.config();
  StartFacts facts;
  facts.version = kVersion;
  facts.run = config.run_id;
  facts.workers = config.workers;
  facts.store = store.served_at();
  facts.log_dir = config.log.dir.empty() ? "" : context_.logs().run_directory();
  facts.shutdown_timeout = config.shutdown_timeout;
  facts.max_restarts = config.max_restarts;
  context_.logger().info(start_line(facts));
}

}  // namespace ddprun
