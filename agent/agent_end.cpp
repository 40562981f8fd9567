// How a run ends on this node: its last lines, the error file for a launcher above, the wait for
// other nodes.
#include <spdlog/logger.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "agent/agent.hpp"
#include "agent/report/lines.hpp"
#include "agent/report/report.hpp"
#include "base/exit_status.hpp"
#include "base/message_line.hpp"
#include "net/loop_turns.hpp"

namespace ddprun {

namespace asio = boost::asio;

namespace {

// Nodes of a run up to which each console has the whole report of its failure; see
// Agent::prints_whole_report().
constexpr int kWholeReportNodesMax = 16;

/// After a note with the reason, which is not repeated.
std::string over_for_that(const std::string& code) {
  return "the run is stopping on every node; " + code;
}

}  // namespace

void Agent::report_end(const client::End& end) {
  if (end.exit_code == kExitSuccess) return report_success(end);
  if (last_) context_.log_shared_names();
  const int stop_signal = node_->stop_signal();
  const bool by_signal = stop_signal != 0 && end.exit_code == exit_code_of_signal(stop_signal);
  if (end.done && (end.done->failure || !by_signal)) {
    report_failure(*end.done);
  } else {
    report_left(end);
  }
  context_.logs().discard_if_empty();
}

control::Outcome Agent::outcome() const {
  const std::optional<client::End>& end = node_->end();
  if (!end) return {};
  if (single_node()) return {true, "has ended"};
  if (end->done) {
    return {true, "has ended on every node: " + end->done->text + "; exit " +
                      std::to_string(end->done->exit_code)};
  }
  const std::string rest = end->rest.empty() ? "what became of the run on other nodes is not known "
                                               "here: the coordinator did not say"
                                             : end->rest;
  return {false, context_.hostname() + " left, " + rest};
}

void Agent::record_end(const client::End& end) {
  RunEnd facts;
  facts.exit_code = end.exit_code;
  facts.stop_signal = node_->stop_signal();
  facts.text = end.done ? end.done->text : end.text;
  if (end.done) facts.failure = end.done->failure;
  facts.rounds = link_events_.round();
  facts.restarts = node_->restarts();
  facts.workers = context_.config().workers.count;
  facts.took = context_.since_start();
  facts.ended =
      std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const LogTree& logs = context_.logs();
  facts.log_dir = logs.run_directory().empty() ? logs.base() : logs.run_directory();
  facts.longest_turn = net::LoopTurns::here().longest().took;
  facts.coordinator = single_node() || coordinator_here() != nullptr;
  context_.log_end(torch_end(facts));
  EventLog& events = context_.events();
  events.record(end_event(facts));
  events.set_result(result_text(facts, context_.config().run_id, context_.hostname()));
}

TorchEvents::End Agent::torch_end(const RunEnd& end) const {
  TorchEvents::End facts{end.exit_code == 0, end.text};
  facts.took = end.took;
  if (last_ && last_->failure) {
    facts.failed = last_->failure->worker.rank;
    facts.error_json = last_->error_json.value_or("");
  }
  return facts;
}

void Agent::report_success(const client::End& end) {
  if (!single_node() && !end.done) {
    context_.logger().warn(warning_line("RUN", end.text));
  } else {
    DoneFacts facts;
    if (!single_node()) facts.text = end.text;
    facts.workers = context_.config().workers.count;
    facts.restarts = node_->restarts();
    facts.took = context_.since_start();
    facts.part = last_ ? NodePart::kTrained : NodePart::kSpare;
    context_.logger().info(done_line(facts));
  }
  if (!context_.config().log.asks_for_files()) return context_.logs().discard();
  context_.logs().discard_if_empty();
}

void Agent::arm_late() {
  late_.expires_after(death_line_delay(context_.config().stopping.failure_grace));
  late_.async_wait([this](const boost::system::error_code& why) {
    if (!why) say_late();
  });
}

void Agent::say_late() {
  late_.cancel();
  failure_known_ = false;
  if (std::string line = node_.core().take_deferred_death_line(); !line.empty()) log_death(line);
  if (!late_death_.empty()) context_.logger().warn(std::exchange(late_death_, {}));
  if (!late_note_.empty()) context_.logger().info(std::exchange(late_note_, {}));
}

// `own`: the failure of the run, which the report names, is that of this node.
void Agent::drop_late(bool own) {
  late_note_.clear();
  if (!own) return say_late();
  late_.cancel();
  late_death_.clear();
}

// Who looks at one console sees what all others do. In a large run, whose consoles are often one
// file, those that people look at have the whole report, and all others its first line.
bool Agent::prints_whole_report(const protocol::Done& done) const {
  const bool small = nodes_ <= kWholeReportNodesMax;
  return small || done.reporter == identity_.id.value() || group_rank_ == 0 ||
         is_own(done.failure->first);
}

void Agent::report_failure(const protocol::Done& done) {
  const bool own = done.failure && is_own(done.failure->first);
  if (own) {
    context_.pass_error_up(*last_);
  } else {
    context_.leave_own_error(done.text);
  }
  drop_late(own);
  if (done.failure && own_error_) {  // no cause of this end
    context_.logger().warn(warning_line(own_error_->code, own_error_->text));
    own_error_.reset();
  }
  if (!done.failure && own_error_reported_) return;  // the other node failed in the same way
  if (!done.failure) {
    const std::string code = "exit " + std::to_string(done.exit_code);
    const bool is_noted = note_ == done.text;
    context_.logger().error(
        error_line("RUN", is_noted ? over_for_that(code) : done.text + "; " + code));
    return;
  }
  if (!prints_whole_report(done)) {
    return context_.logger().error(failure_headline(*done.failure) +
                                   labelled("exit", "code " + std::to_string(done.exit_code)));
  }
  const std::vector<RankLog> none;
  const std::vector<RankLog>& logs = last_ ? last_->logs : none;
  const Shown shown = own ? last_->shown : Shown::kNo;
  const std::string likely = last_ ? last_->own_workers : std::string();
  context_.logger().error(failure_report(*done.failure, context_.hostname(), logs, shown, likely));
}

void Agent::report_left(const client::End& end) {
  say_late();
  if (!end.rest.empty() && !single_node()) context_.logger().info(run_note(end.rest));
  if (own_error_reported_) return;
  const int signal = node_->stop_signal();
  if (signal == 0 || end.exit_code != exit_code_of_signal(signal)) {
    context_.logger().error(error_line("RUN", end.text));
    return context_.leave_own_error(end.text);
  }
  const std::string from = stopped_by_.from.empty() ? "" : " from " + stopped_by_.from;
  context_.leave_own_error("ddprun was stopped by " + signal_name(signal) + from);
  if (!last_ || !ranks_are_stopped_) {
    context_.logger().warn(left_line(signal));
    return;
  }
  context_.logger().warn(stopped_line(signal, last_->stop_facts()));
}

void Agent::report_own_error() {
  if (own_error_) context_.logger().error(error_line(own_error_->code, own_error_->text));
}

// Whether the run's first failure was the first one of this node, too.
bool Agent::is_own(const WorkerExit& first) const {
  if (!last_ || !last_->failure) return false;
  const WorkerName& own = last_->failure->worker;
  return own.rank == first.worker.rank && own.pid == first.worker.pid;
}

// Bounded by the coordinator, which gives the other nodes their time to go; a stop signal ends the
// run for them, a second one this wait.
asio::awaitable<void> Agent::settle() {
  if (elected_) {
    co_await settle_elected();
    co_return;
  }
  // One that only sends nodes on, or has lost whom it sends them to, ends no run.
  if (coordinator_here() == nullptr || !node_->membership().hosts_coordinator()) co_return;
  if (node_->ends_run()) shut_down_coordinator();
  if (node_->is_forced_stop()) co_return;
  const bool left_early = !node_->end()->done && node_->stop_signal() == 0;
  if (left_early)
    context_.logger().info(run_note("this node stays as the coordinator of the others"));
  stays_ = true;
  co_await wait_until_settled(*coordinator_here());
}

// The coordinator may know that already.
void Agent::shut_down_coordinator() {
  const std::string leaves = context_.hostname() + ", which runs the coordinator, leaves: ";
  coordinator_here()->shut_down(node_->run_exit_code(), leaves + received_text(stopped_by_));
}

// A node that leaves takes no other with it: one of these is elected. If the run ends, with or
// because of it, all others get the verdict first.
asio::awaitable<void> Agent::settle_elected() {
  if (node_->is_forced_stop()) co_return;
  if (coordinator_here() != nullptr && coordinator_here()->is_ending()) {
    coordinator::Server& here = *coordinator_here();
    co_await wait_until_settled(here);
  }
  co_await elected_->resign();
}

asio::awaitable<void> Agent::wait_until_settled(coordinator::Server& coordinator) {
  asio::co_spawn(executor_, coordinator.settle(), [this](const std::exception_ptr& bug) {
    if (bug) std::rethrow_exception(bug);
    settled_.cancel();
  });
  boost::system::error_code cancelled;
  co_await settled_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
}

}  // namespace ddprun
