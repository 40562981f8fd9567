// Agent: the rounds of a run on one node alone, one after another, until it succeeded, failed for
// good or was stopped. Thread rule: the io_context's thread. Ownership: config, environment and
// logger outlive it.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <memory>
#include <string>

#include "agent/core/restart.hpp"
#include "agent/round.hpp"
#include "agent/round_store.hpp"
#include "agent/run_context.hpp"

namespace ddprun {

class Agent {
 public:
  Agent(boost::asio::any_io_executor executor, AgentInputs inputs);

  /// The whole run; completes with the exit code when everything is said. No deadline of its own.
  /// Do not cancel run(): request_stop() ends it. A cancelled run() throws at its next wait without
  /// stopping the workers, which the kernel then kills when this process ends.
  [[nodiscard]] boost::asio::awaitable<int> run();
  /// See RoundRunner; a round that is over takes no notice, but then no other one follows it.
  void request_stop(int signal);
  void pass_on(int signal);

 private:
  enum class Next { kAnotherRound, kEnd };
  [[nodiscard]] boost::asio::awaitable<RoundResult> run_round(RoundInputs inputs);
  [[nodiscard]] RoundInputs prepare(const RoundStore& store);
  [[nodiscard]] Next after(const RoundResult& result);
  [[nodiscard]] Next after_failure(const RoundResult& result);
  void finish_stopped(const RoundResult& result);
  void finish_failed(const RoundResult& result, const std::string& why_no_restart);
  void tell_start(const RoundStore& store);

  boost::asio::any_io_executor executor_;
  RunContext context_;
  Round round_{1};
  RestartBudget budget_;
  std::shared_ptr<RoundRunner> runner_;  // of the round that runs; null between rounds
  int stop_signal_ = 0;                  // the first that asked for the end of the run, 0: none
  int exit_code_ = 0;
};

}  // namespace ddprun
