// Agent: the rounds of a run on one node, one after another, until it succeeded, failed for good or
// was stopped. Thread rule: the io_context's thread. Ownership: config, environment and logger
// outlive it.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <memory>
#include <string>

#include "agent/core/launch_config.hpp"
#include "agent/core/restart.hpp"
#include "agent/proc/console.hpp"
#include "agent/proc/log_tree.hpp"
#include "agent/round.hpp"
#include "agent/round_store.hpp"
#include "base/environment.hpp"

namespace ddprun {

struct AgentInputs {
  const LaunchConfig& config;
  const Environment& environment;
  spdlog::logger& logger;
  Consoles consoles;
};

class Agent {
 public:
  Agent(boost::asio::any_io_executor executor, AgentInputs inputs);

  /// The whole run; completes with the exit code when everything is said. No deadline of its own.
  [[nodiscard]] boost::asio::awaitable<int> run();
  /// See RoundRunner; between two rounds a stop is remembered.
  void request_stop(int signal);
  void pass_on(int signal);

 private:
  enum class Next { kAnotherRound, kEnd };
  [[nodiscard]] boost::asio::awaitable<RoundResult> run_round(RoundInputs inputs);
  [[nodiscard]] Result<RoundInputs> prepare(const RoundStore& store);
  [[nodiscard]] Next after(const RoundResult& result);
  [[nodiscard]] Next after_failure(const RoundResult& result);
  void finish_stopped(const RoundResult& result);
  void finish_failed(const RoundResult& result, const std::string& why_no_restart);
  void tell_unkillable(const RoundResult& result);
  void tell_start(const RoundStore& store);
  int fail(const std::string& code, const Error& error);
  void leave_error_file(const std::string& text);

  boost::asio::any_io_executor executor_;
  const LaunchConfig& config_;
  const Environment& environment_;
  spdlog::logger& logger_;
  Consoles consoles_;
  std::string hostname_;
  TimePoint started_;
  std::unique_ptr<LogTree> logs_;
  Round round_{1};
  RestartBudget budget_;
  std::shared_ptr<RoundRunner> runner_;  // of the round that runs; null between rounds
  int pending_stop_ = 0;
  int exit_code_ = 0;
};

}  // namespace ddprun
