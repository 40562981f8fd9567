// What users ask of a run that lasts: its state, its metrics, its stacks, a pause; and the line on
// a terminal.

#include <signal.h>
#include <spdlog/logger.h>
#include <sys/resource.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <utility>

#include "agent/agent.hpp"
#include "agent/coordinate/link_messages.hpp"
#include "agent/output/wait_line.hpp"
#include "agent/proc/process_table.hpp"
#include "agent/report/lines.hpp"
#include "agent/watch/stack_groups.hpp"
#include "base/limits.hpp"
#include "base/program_name.hpp"
#include "net/bugs.hpp"
#include "net/loop_turns.hpp"

namespace ddprun {

namespace asio = boost::asio;

// How long a state lasts is asked for later, so that each step of the node notes it.
void Agent::note_state() {
  std::string_view name = node_->membership().state_names().front();
  if (runner_ != nullptr && runner_->holds()) name = "holding";
  if (runner_ != nullptr && runner_->stops() && name == "running") name = "stopping";
  const Round round = node_->membership().round();
  if (state_ && state_->round == round && state_->name == name) return;
  state_ = State{round, name, state_ ? Clock::now() : context_.started()};
}

control::NodeStatus Agent::status() {
  note_state();
  const LaunchConfig& config = context_.config();
  control::NodeStatus status;
  status.run_id = config.run_id;
  status.version = kVersion;
  status.host = context_.hostname();
  status.pid = config.pid != 0 ? config.pid : ::getpid();
  status.command = config.workers.identity.text;
  status.age = context_.since_start();
  const auto now = std::chrono::system_clock::now() - status.age;
  status.started = std::chrono::time_point_cast<WallTime::duration>(now);
  status.round = node_->membership().round();
  status.state = state_->name;
  status.in_state = Clock::now() - state_->since;
  status.waits = node_->membership().waits_for(Clock::now());
  status.workers = config.workers.count;
  status.restarts = node_->restarts();
  status.max_restarts = config.stopping.max_restarts;
  status.store = store_.served_at();
  if (config.rendezvous) {
    const bool elected = config.rendezvous->etcd.has_value();
    status.coordinator =
        elected ? coordinator_text(*config.rendezvous) : node_->membership().coordinator();
  }
  if (coordinator_here() != nullptr) status.cluster = coordinator_here()->status_json();
  if (context_.spares() != nullptr) status.spares = context_.spares()->status();
  if (runner_ == nullptr) return status;
  status.log_dir = runner_->log_directory();
  for (const WorkerName& worker : runner_->workers()) {
    control::WorkerStatus& told = status.ranks.emplace_back();
    told.rank = worker.rank;
    told.local_rank = worker.local_rank;
    told.pid = worker.pid;
    const auto process = worker.pid > 0 ? find_process(worker.pid) : std::nullopt;
    if (process) told.state = process->state;
    told.warm = runner_->started_warm(worker.local_rank);
    if (worker.pid > 0) told.silent = runner_->silence_of(worker.local_rank);
    const auto step = runner_->last_step(worker.local_rank);
    if (step) told.step = {step->step, step->ago};
  }
  return status;
}

// Two at once would trace the same processes.
asio::awaitable<std::string> Agent::save_stacks() {
  const std::shared_ptr<RoundRunner> runner = runner_;
  if (runner == nullptr) co_return "no rank runs on this node";
  if (std::exchange(saves_stacks_, true)) co_return "stacks are being read already";
  const std::string why = "ddprun stacks";
  const SavedStacks saved = co_await runner->dump_stacks(why);
  saves_stacks_ = false;
  if (saved.dump.ranks.empty()) co_return "no rank runs on this node";
  std::string text = groups_text(group_stacks(saved.dump));
  text += saved.file.empty() ? "; no log directory: not saved" : "; all stacks: " + saved.file;
  co_return text;
}

MetricsFacts Agent::metrics_facts() const {
  MetricsFacts facts;
  facts.version = kVersion;
  facts.run = context_.config().run_id.value();
  facts.host = context_.hostname();
  facts.output_bytes = context_.output_bytes();
  for (const WorkerName& worker :
       runner_ == nullptr ? std::vector<WorkerName>() : runner_->workers()) {
    const auto step = runner_->last_step(worker.local_rank);
    if (step) facts.steps.emplace_back(worker.rank, step->step);
  }
  const store::Counters counters = store_.counters();
  facts.store_connections = counters.connections;
  facts.store_keys = counters.keys;
  facts.store_refused = counters.refused;
  const net::LoopTurns& turns = net::LoopTurns::here();
  facts.longest_turn = turns.longest().took;
  facts.turn_cpu_max = turns.most_cpu();
  rusage used = {};
  ::getrusage(RUSAGE_SELF, &used);
  facts.cpu_seconds = static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                      static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
  facts.resident_bytes = static_cast<std::uint64_t>(used.ru_maxrss) * 1024;
  return facts;
}

// Behind what makes the control socket: a command may follow at once.
void Agent::tell_that_it_started() {
  const LaunchConfig& config = context_.config();
  const int started = config.started;
  if (started < 0 || std::exchange(told_that_it_started_, true)) return;
  context_.after_files([started, line = config.run_id.value() + "\n"] {
    const ssize_t ignored = ::write(started, line.data(), line.size());
    static_cast<void>(ignored);  // a pipe of which one line is read has room; or who asked is gone
    ::close(started);
  });
}

void Agent::show_wait(const client::Event& event) {
  WaitLine* const line = context_.waits();
  if (line == nullptr || single_node()) return;
  if (!rendezvous_wait_) {
    rendezvous_wait_.emplace(*context_.config().rendezvous, context_.started());
  }
  const bool over = runner_ != nullptr || node_->end() || node_->stop_signal() != 0;
  if (over) rendezvous_wait_->end();
  const bool joined = node_->membership().joined();
  const std::optional<Wait> wait =
      over ? std::nullopt : rendezvous_wait_->after(event, joined, Clock::now());
  if (!wait) return line->end(WaitLine::Of::kRendezvous);
  line->begin(WaitLine::Of::kRendezvous, [wait] { return *wait; });
}

// Workers that wait for a place in a round are not counted.
int Agent::stop_workers() {
  int ranks = runner_ == nullptr ? 0 : runner_->pause(true);
  for (const CarriedWorker& held : carried_.all) {
    held.worker->child->pause_group(true);
    ++ranks;
  }
  context_.stop_waiting_workers();
  return ranks;
}

void Agent::continue_workers(Duration stopped) {
  context_.extend_timers(stopped);
  if (runner_ != nullptr) static_cast<void>(runner_->pause(false));
  for (const CarriedWorker& held : carried_.all) held.worker->child->pause_group(false);
  context_.continue_waiting_workers(stopped);
}

void Agent::pause(const ReceivedSignal& received) {
  if (std::exchange(pauses_, true)) return;
  asio::co_spawn(executor_, pause_all(received), net::rethrow_bug);
}

// The note comes first: this process may have to wait for its console, and the front stops when
// this one has. A SIGCONT that comes meanwhile has continued the workers, and is followed by one
// for this process.
asio::awaitable<void> Agent::pause_all(ReceivedSignal received) {
  const auto& rendezvous = context_.config().rendezvous;
  PauseFacts facts;
  facts.ranks = stop_workers();
  // The nodes of a run of fixed size wait for this one.
  if (rendezvous && rendezvous->nodes_min < rendezvous->nodes_max) {
    facts.lost_after = rendezvous->keep_alive_interval * rendezvous->keep_alive_max_attempt;
  }
  context_.logger().info(pause_line(received, facts));
  const TimePoint stopped = Clock::now();
  co_await context_.console_is_written(stopped + kPauseNoteMax);
  static_cast<void>(stop_workers());
  ::kill(::getpid(), SIGSTOP);
  pauses_ = false;
  const Duration took = Clock::now() - stopped;
  continue_workers(took);
  context_.logger().info(resume_line(took));
}

}  // namespace ddprun
