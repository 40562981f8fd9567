#include "agent/workers/round.hpp"

#include <signal.h>
#include <spdlog/logger.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "agent/events/run_events.hpp"
#include "agent/output/console_queue.hpp"
#include "agent/output/output.hpp"
#include "agent/proc/spawn.hpp"
#include "agent/report/lines.hpp"
#include "base/macros.hpp"
#include "net/bugs.hpp"

namespace ddprun {

namespace asio = boost::asio;

namespace {

LocalRound::Options round_options(const RoundInputs& inputs) {
  const StopConfig& stopping = inputs.config.stopping;
  WorkerGroup::Options options{inputs.config.workers.count, stopping.shutdown_timeout,
                               stopping.straggler_timeout, stopping.rejoin_timeout};
  for (const CarriedWorker& one : inputs.carried.all) {
    options.carried.push_back(one.rank);
    if (one.spare != 0) options.spares.push_back(one.rank);
  }
  options.finished = inputs.carried.finished;
  options.failure_grace = stopping.failure_grace;
  options.may_be_last = inputs.facts.may_be_last;
  using Elsewhere = LocalRound::Elsewhere;
  return {inputs.facts.round, std::move(options), inputs.run_started,
          inputs.facts.groups > 1 ? Elsewhere::kRanks : Elsewhere::kNoRanks, inputs.carried.round};
}

}  // namespace

RoundRunner::RoundRunner(asio::any_io_executor executor, RoundInputs inputs)
    : executor_(executor),
      inputs_(std::move(inputs)),
      recovers_(!inputs_.carried.all.empty()),
      cpu_timer_(executor),
      stop_timer_(executor),
      hearing_timer_(executor),
      death_line_timer_(executor),
      countdown_timer_(executor),
      finished_(executor, TimePoint::max()),
      watch_(std::make_shared<RoundWatch>(
          executor,
          RoundWatch::Inputs{inputs_.environment, inputs_.logger, inputs_.disk, inputs_.orphans,
                             inputs_.facts.round, inputs_.run_started, inputs_.config.stopping,
                             inputs_.facts.master_port, may_ask_for_input(inputs_)})),
      evidence_(inputs_.disk, inputs_.environment, inputs_.descriptor_limit),
      links_(
          inputs_.facts, inputs_.events, inputs_.links,
          [this](LocalRank rank, const worker_link::Report& report) { hear(rank, report); },
          [this](LocalRank rank, const WorkerTimer& timer) {
            watch_->end_timer(name_of(rank), timer);
          }),
      round_(*this, LocalRound(round_options(inputs_), Clock::now())) {
  for (int i = 0; i < inputs_.config.workers.count; ++i)
    workers_.push_back(std::make_shared<Worker>());
}

std::shared_ptr<RoundRunner> RoundRunner::make(asio::any_io_executor executor, RoundInputs inputs) {
  auto runner = std::make_shared<RoundRunner>(std::move(executor), std::move(inputs));
  runner->adopt();
  return runner;
}

void RoundRunner::on_step() {
  const GroupState state = round_->group().state();
  if (!ending_since_ && state > GroupState::kHealthy) ending_since_ = Clock::now();
  const bool stops = state == GroupState::kStopping || state == GroupState::kKilling;
  if (stops) hold_up_for(kConsoleStallAtStop);
  watch_->update(round_->group());
  if (inputs_.spares && state > GroupState::kHealthy) inputs_.spares->pause();
}

void RoundRunner::act(const local::Over&) {
  watch_->end();
  if (inputs_.warm) inputs_.warm->release();
  hearing_timer_.cancel();
  cpu_timer_.cancel();
  finished_.cancel();
}

asio::awaitable<RoundResult> RoundRunner::run() {
  watch_->look_at(weak_from_this());
  inputs_.facts.worker_socket =
      inputs_.links->open(executor_, inputs_.facts.nonce, inputs_.config, inputs_.logger);
  inputs_.facts.timer_pipe = inputs_.links->timer_pipe();
  feed(local::Begin{});
  boost::system::error_code cancelled;
  std::vector<RankLog> logs;
  while (!round_->over()) {  // meanwhile a stop may take back what was released
    while (!round_->over()) {
      co_await finished_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
    }
    record_steps();
    if (round_->released().empty()) links_.close();
    co_await drain_outputs();
    auto written = co_await written_logs();
    logs = std::move(written);
  }
  tell_devices();
  RoundResult result = round_->result(ends());
  result.logs = std::move(logs);
  if (unsaid_failure_) result.death_line = death_line(*unsaid_failure_, result.stopped);
  unsaid_failure_.reset();
  if (result.failure && is_shown(*result.failure)) result.shown = Shown::kYes;
  if (result.descendants > 0) inputs_.logger.info(cleanup_line(result.cleanup_facts()));
  co_return result;
}

void RoundRunner::request_stop(int signal) {
  inputs_.links->ask_to_stop(signal);  // before the signal: see ddprun_worker_handle_stop()
  const bool was_opening = opening_.has_value();
  feed(StopRequested{signal});
  // Then the end has nothing to wait for.
  if (was_opening && !inputs_.disk.has_writes()) inputs_.disk.hurry();
}

void RoundRunner::end(const client::StopGroup& order) {
  if (order.look) feed(local::LookAsked{});
  if (order.requested) inputs_.links->ask_to_stop(order.signal);  // first, as in request_stop()
  look_at_survivors();
  feed(local::stop_ordered(order));
}

void RoundRunner::act(const local::CancelTimer&) {
  stop_timer_.cancel();
  end_countdown();
}

std::vector<Rank> RoundRunner::running_ranks() const {
  std::vector<Rank> ranks;
  for (const LocalRank rank : round_->group().running()) ranks.push_back(worker(rank).plan.rank);
  return ranks;
}

void RoundRunner::act(const ArmTimer& action) {
  const TimePoint deadline = action.deadline;
  const WorkerGroup& group = round_->group();
  if (group.state() == GroupState::kStopping && !group.spared_until()) {
    begin_countdown(deadline);
  } else {
    end_countdown();
  }
  stop_timer_.expires_at(deadline);
  stop_timer_.async_wait([self = shared_from_this(), deadline](const auto& why) {
    if (!why) self->feed(TimerExpired{deadline, self->progress_of_left()});
  });
}

// In whatever round it ends. What ends after its round was given up as unkillable.
asio::awaitable<void> RoundRunner::watch(std::shared_ptr<Worker> watched, Orphans& orphans) {
  Child& child = *watched->child;
  const auto status = co_await child.wait();
  orphans.no_longer_except(child.pid());
  if (watched->ended_apart) {
    std::exchange(watched->ended_apart, nullptr)(status ? *status : ExitStatus::exited(1));
    co_return;
  }
  const auto self = watched->runner.lock();
  if (self == nullptr) co_return;
  const LocalRank rank = watched->plan.local_rank;
  self->links_.ended(rank);
  Descendants& descendants = self->find_descendants(*watched);
  using Others = Descendants::Others;
  const bool others_stay = self->inputs_.config.stopping.rejoin_timeout.has_value();
  const bool left = descendants.look(others_stay ? Others::kStay : Others::kEnd);
  if (left && watched->spares_pipe_ends) descendants.kill_but_pipe_ends();
  const bool may_be_first = watched->last_signal == 0 && !self->round_->group().first_failure();
  if (may_be_first && status && !status->success()) {
    watched->facts = self->evidence_.measure(child, watched->output_plan, descendants);
    watched->facts.steps = self->steps_of(rank);
    watched->facts.stepped = self->all_stepped();
  }
  if (!left && child.leaf()) child.leaf()->remove();
  // Only a parent that reaps behind our back makes wait() fail; what happened to the worker is
  // unknown then.
  self->exited(rank, status ? *status : ExitStatus::exited(1),
               left ? LeftBehind::kProcesses : LeftBehind::kNothing);
  if (!left) co_return;
  co_await descendants.wait_until_gone();
  if (child.leaf()) child.leaf()->remove();
  self->feed(local::Emptied{rank});
}

Descendants& RoundRunner::find_descendants(Worker& ended) {
  const EndedWorker worker{ended.child->pid(), ended.mark, ended.child->leaf(), ended.last_signal};
  return ended.descendants.emplace(executor_, inputs_.orphans, worker);
}

WorkerName RoundRunner::name_of(LocalRank rank) const {
  const Worker& named = worker(rank);
  return {named.plan.rank, rank, named.child->pid(), inputs_.hostname};
}

std::vector<WorkerName> RoundRunner::workers() const {
  std::vector<WorkerName> all;
  for (const LocalRank rank : local_ranks()) {
    const Worker& one = worker(rank);
    const bool runs = one.child && !round_->has_exited(rank);
    all.push_back({one.plan.rank, rank, runs ? one.child->pid() : 0, inputs_.hostname});
  }
  return all;
}

void RoundRunner::exited(LocalRank rank, ExitStatus status, LeftBehind left) {
  const Worker& ended = worker(rank);
  local::Exited exit{describe_exit(rank), left, ended.may_obey};
  exit.exit.status = status;
  exit.exit.passed_signal = ended.passed.explaining(status);
  if (!status.success()) look_at_survivors();
  feed(std::move(exit));
}

void RoundRunner::give_up(const GiveUp& order) {
  const std::optional<LocalRank> rank = round_->rank_of(order);
  if (rank) feed(local::GiveUpAsked{order, describe_exit(*rank)});
}

WorkerExit RoundRunner::describe_exit(LocalRank rank) const {
  using std::chrono::milliseconds;
  WorkerExit exit;
  exit.worker = name_of(rank);
  exit.when = std::chrono::time_point_cast<milliseconds>(std::chrono::system_clock::now());
  exit.log = log_of(worker(rank).output_plan.err);
  exit.evidence = worker(rank).facts;
  return exit;
}

std::vector<std::string> RoundRunner::left_behind(LocalRank rank) const {
  std::vector<std::string> names;
  const auto& descendants = worker(rank).descendants;
  if (!descendants) return names;
  for (const ProcessEntry& process : descendants->living(kLeftNamedMax)) {
    names.push_back(process.name);
  }
  return names;
}

std::string RoundRunner::steps_of(LocalRank failed) const {
  std::vector<std::int64_t> others;
  for (const LocalRank rank : round_->group().running()) {
    const auto step = rank == failed ? std::nullopt : links_.last_step(rank);
    if (step) others.push_back(step->step);
  }
  const auto its = links_.last_step(failed);
  return steps_text(worker(failed).plan.rank,
                    its ? std::optional<std::int64_t>(its->step) : std::nullopt, others);
}

// The page of one that survives has the steps of rounds before, too.
bool RoundRunner::all_stepped() const {
  const Duration lasts = Clock::now() - began_;
  for (const LocalRank rank : local_ranks()) {
    const auto step = links_.last_step(rank);
    if (!step || step->ago >= lasts) return false;
  }
  return true;
}

WatchedRanks RoundRunner::watched_ranks() const {
  WatchedRanks ranks;
  for (const LocalRank rank : round_->group().succeeded()) {
    ranks.finished.push_back(name_of(rank).rank);
  }
  for (const LocalRank rank : round_->group().running()) {
    ranks.running.push_back(name_of(rank));
    const auto step = links_.last_step(rank);
    ranks.steps.push_back(step ? step->step : -1);
    ranks.held.push_back(worker(rank).output->is_held_up());
    ranks.written.push_back(worker(rank).output->last_written());
  }
  return ranks;
}

void RoundRunner::act(const local::ExitTaken& action) {
  const bool exiting = worker(action.rank).exits_apart;
  inputs_.events.record(worker_exited_event(inputs_.facts.round, name_of(action.rank),
                                            action.status, action.signal, exiting));
}

void RoundRunner::act(const local::SpawnGivenUp& action) {
  const SpawnFailed& failed = action.failure;
  inputs_.events.record(
      spawn_failed_event(inputs_.facts.round, failed.rank, failed.error.sentence));
}

void RoundRunner::act(const local::GaveUp& action) {
  inputs_.events.record(give_up_event(inputs_.facts.round, action.order));
}

void RoundRunner::running() {
  hold_up_for(kConsoleStallMax);
  links_.running();
  sample_cpu();
  RunEvent started{"all_running", inputs_.facts.round, {{"workers", workers_.size()}}};
  if (inputs_.warm) {
    boost::json::array& warm = started.fields["warm"].emplace_array();
    for (const Rank rank : started_ranks(true)) warm.emplace_back(rank.value());
    tell_warm_starts();
    prepare_warm_restart();
  }
  inputs_.events.record(std::move(started));
}

void RoundRunner::act(const local::Tell& action) {
  const client::Event& event = action.event;
  const bool runs = std::holds_alternative<client::GroupRunning>(event);
  if (runs) running();
  if (const auto* failed = std::get_if<client::GroupFailed>(&event)) {
    inputs_.events.record(first_failure_event(inputs_.facts.round, failed->first));
  }
  inputs_.hooks.tell(event);
  if (runs) tell_spares();
}

asio::awaitable<void> RoundRunner::drain_outputs() {
  const TimePoint deadline = Clock::now() + kDrainMax;
  const std::vector<LocalRank> ranks = local_ranks();
  for (const LocalRank rank : ranks) {
    // What exits still has its pipe: its output is read when it is gone.
    if (worker(rank).exits_apart || !round_->has_exited(rank)) continue;
    co_await worker(rank).output->drain(deadline);
  }
}

RoundRunner::Worker& RoundRunner::worker(LocalRank rank) {
  return *slot(rank);
}

const RoundRunner::Worker& RoundRunner::worker(LocalRank rank) const {
  return *workers_.at(static_cast<std::size_t>(rank.value()));
}

std::shared_ptr<RoundRunner::Worker>& RoundRunner::slot(LocalRank rank) {
  return workers_.at(static_cast<std::size_t>(rank.value()));
}

std::vector<LocalRank> RoundRunner::local_ranks() const {
  std::vector<LocalRank> all;
  for (int rank = 0; rank < inputs_.config.workers.count; ++rank) all.emplace_back(rank);
  return all;
}

}  // namespace ddprun
