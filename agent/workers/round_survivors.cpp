// How workers that survive a change of the round pass from one runner to the next
// (--restart=failed, docs/RECOVERY.md).
#include <signal.h>
#include <spdlog/logger.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <exception>
#include <memory>
#include <utility>

#include "agent/events/run_events.hpp"
#include "agent/output/output.hpp"
#include "agent/output/tail.hpp"
#include "agent/proc/process_facts.hpp"
#include "agent/watch/watch_lines.hpp"
#include "agent/workers/round.hpp"
#include "net/bugs.hpp"

namespace ddprun {

namespace asio = boost::asio;

void kill_all_of(const RoundWorker& worker) {
  const auto& leaf = worker.child->leaf();
  if (leaf) leaf->kill();
  ::kill(-worker.child->pid(), SIGKILL);
}

asio::awaitable<void> bury(asio::any_io_executor executor, Orphans& orphans,
                           std::shared_ptr<RoundWorker> ended) {
  const auto& leaf = ended->child->leaf();
  Descendants& left = ended->descendants.emplace(
      executor, orphans, EndedWorker{ended->child->pid(), ended->mark, leaf, SIGKILL});
  if (left.look(Descendants::Others::kStay)) {
    left.signal(SIGKILL);
    co_await left.wait_until_gone();
  }
  if (leaf) leaf->remove();
  co_await ended->output->drain(Clock::now() + kDrainMax);
}

namespace {

// How often it is looked whether a process exits of which a thread does, and the interval.
constexpr int kLooksAtExit = 20;
constexpr std::chrono::milliseconds kLookAtExitInterval{1};

// What it wrote in rounds before says nothing about a failure of this one.
void forget_rounds_before(const std::shared_ptr<RoundWorker>& worker, DiskThread& disk) {
  worker->output->forget();
  for (StreamPlan* plan : {&worker->output_plan.out, &worker->output_plan.err}) {
    const std::string file = unseen_file(*plan);
    const auto size = std::make_shared<std::uint64_t>(0);
    if (file.empty()) continue;
    disk.post([file, size] { *size = size_of_file(file); },
              [worker, plan, size] { plan->before = *size; });
  }
}

// What it wrote last is kept.
asio::awaitable<void> drain(std::shared_ptr<RoundWorker> ended) {
  co_await ended->output->drain(Clock::now() + kDrainMax);
}

}  // namespace

CarriedWorkers RoundRunner::hand_over() {
  CarriedWorkers carried;
  carried.since = ending_since_.value_or(Clock::now());
  for (const LocalRank rank : round_->released()) {
    const int spare = round_->group().worker(rank).is_spare ? worker(rank).spare : 0;
    carried.all.push_back(
        {rank, std::exchange(slot(rank), std::make_shared<Worker>()), links_.release(rank), spare});
  }
  links_.close();
  LocalRound::Trained trained = round_->trained();
  carried.round = trained.round;
  carried.finished = std::move(trained.finished);
  return carried;
}

void RoundRunner::adopt() {
  for (CarriedWorker& one : inputs_.carried.all) {
    const Rank rank(inputs_.facts.first_rank.value() + one.rank.value());
    one.worker->runner = weak_from_this();
    one.worker->plan.rank = rank;
    one.worker->plan.local_rank = one.rank;
    one.worker->spare = one.spare;
    one.worker->may_obey = false;
    one.worker->passed = {};
    if (one.link) links_.adopt(one.rank, *one.link);
    slot(one.rank) = std::move(one.worker);
  }
}

// Its link ends before the kernel tells of its end.
bool exits_with_0(const RoundWorker& worker) {
  return worker.child && is_exiting_with_0(worker.child->pid());
}

void RoundRunner::look_at_survivors() {
  const GroupState state = round_->group().state();
  const bool runs = state == GroupState::kStarting || state == GroupState::kHealthy;
  if (!runs || !inputs_.config.stopping.rejoin_timeout) return;
  for (const LocalRank rank : round_->group().running()) {
    // One that has not taken the round is about to end if its link has ended.
    const WorkerRecord& record = round_->group().worker(rank);
    const bool survives = links_.survives(rank) || exits_with_0(worker(rank)) ||
                          record.carried != WorkerRecord::Carried::kNo;
    if (survives != record.survives) feed(local::Survives{rank, survives});
  }
}

// A worker that cannot be told any more, because its link has ended, is started again.
void RoundRunner::act(const local::TellRound& action) {
  Worker& told = worker(action.rank);
  const bool is_told = links_.push(action.rank, round_variables(told.plan)) || exits_with_0(told);
  const WorkerName name = name_of(action.rank);
  const Round round = inputs_.facts.round;
  inputs_.events.record(told.spare > 0 ? spare_used_event(round, name, told.spare)
                                       : worker_kept_event(round, name));
  answer(local::Told{action.rank, is_told});
}

void RoundRunner::joined(LocalRank rank) {
  inputs_.events.record(worker_joined_event(inputs_.facts.round, name_of(rank)));
  forget_rounds_before(slot(rank), inputs_.disk);
  feed(local::Joined{rank});
}

void RoundRunner::exits(LocalRank rank) {
  worker(rank).may_exit = true;
  exits_soon(rank, kLooksAtExit);
}

// One that began to exit before, and whose end is waited for, is the first failure of the two: its
// connections close early in its end.
bool RoundRunner::follows_another_exit(LocalRank rank) const {
  for (const LocalRank other : local_ranks()) {
    if (other != rank && worker(other).may_exit && !round_->has_exited(other)) return true;
  }
  return false;
}

// Its memory, of which a training has much, is torn down before its end is told; a next round need
// not wait for that. What has started processes is waited for as ever, and so is the end of a run:
// its report says how much memory the worker held.
void RoundRunner::exits_soon(LocalRank rank, int looks) {
  const std::shared_ptr<Worker> its = slot(rank);
  const GroupState state = round_->group().state();
  const bool runs = state == GroupState::kStarting || state == GroupState::kHealthy;
  if (!runs || inputs_.facts.may_be_last) return;
  if (!its->child || round_->has_exited(rank) || its->last_signal != 0) return;
  const pid_t pid = its->child->pid();
  const auto status = status_of_exiting(pid);
  if (!status && looks > 0) {  // the thread that was watched may be the first to exit
    const auto again = std::make_shared<asio::steady_timer>(executor_, kLookAtExitInterval);
    return again->async_wait([self = shared_from_this(), again, rank, looks](const auto&) {
      self->exits_soon(rank, looks - 1);
    });
  }
  if (!status) its->may_exit = false;
  if (!status || follows_another_exit(rank)) return;
  if (!is_alone(pid, its->child->leaf(), inputs_.orphans)) return;
  kill_all_of(*its);  // a thread that only seems to end with the process does now
  links_.ended(rank);
  its->facts = evidence_.measure_exiting(*its->child, its->output_plan);
  its->facts.steps = steps_of(rank);
  its->facts.stepped = all_stepped();
  its->ended_apart = [executor = executor_, &orphans = inputs_.orphans, exiting = inputs_.exiting,
                      ended = std::weak_ptr(its)](const ExitStatus&) {
    const auto gone = [exiting](const std::exception_ptr& bug) {
      exiting->gone();
      net::rethrow_bug(bug);
    };
    asio::co_spawn(executor, bury(executor, orphans, ended.lock()), gone);
  };
  its->exits_apart = true;
  inputs_.exiting->begun();
  exited(rank, *status, LeftBehind::kNothing);
}

bool RoundRunner::await_room(LocalRank rank) {
  if (!inputs_.exiting->any()) return false;
  asio::co_spawn(executor_, wait_for_room(shared_from_this(), rank), net::rethrow_bug);
  return true;
}

asio::awaitable<void> RoundRunner::wait_for_room(std::shared_ptr<RoundRunner> self,
                                                 LocalRank rank) {
  co_await self->inputs_.exiting->wait_until_gone();
  self->feed(local::SpawnDue{rank});
}

// Once nothing is to be done for this round, and its program is known to survive.
void RoundRunner::tell_spares() {
  if (!inputs_.spares || recovers_ || round_->group().state() != GroupState::kHealthy) return;
  const bool last = !inputs_.config.rendezvous &&
                    inputs_.facts.restarts.value() >= inputs_.config.stopping.max_restarts;
  if (last) return inputs_.spares->stop();
  for (const LocalRank rank : local_ranks()) {
    if (!links_.survives(rank)) return;
  }
  inputs_.spares->round_runs();
}

// Of a worker that was taken over, and has ended: the one in its place has files of its own.
void RoundRunner::make_place(LocalRank rank) {
  if (worker(rank).child) {
    asio::co_spawn(executor_, drain(slot(rank)), net::rethrow_bug);
    slot(rank) = std::make_shared<Worker>();
    plan_one(rank);
  }
  if (!inputs_.carried.all.empty()) recovered_.started.push_back(worker(rank).plan.rank);
}

void RoundRunner::act(const local::LogAgain& action) {
  const WorkerName& again = action.worker;
  const Round round = inputs_.facts.round;
  const Duration limit = *inputs_.config.stopping.rejoin_timeout;
  if (worker(again.local_rank).last_signal != SIGKILL) {
    return inputs_.logger.info(lost_survivor_line(round, again, action.status));
  }
  inputs_.logger.info(action.untold
                          ? untold_line(round, again, std::min<Duration>(limit, kUntoldMax))
                          : not_joined_line(round, again, limit));
}

void RoundRunner::act(const local::LogRecovery& action) {
  const Duration took = Clock::now() - inputs_.carried.since;
  for (const auto& worker : workers_) {
    if (worker->spare > 0) recovered_.from_spares.push_back(worker->plan.rank);
  }
  Recovery all = action.recovery;
  all.from_spares = static_cast<int>(recovered_.from_spares.size());
  all.kept -= all.from_spares;
  recovered_.kept = all.kept;
  inputs_.events.record(recovered_event(inputs_.facts.round, all, took));
  inputs_.logger.info(recovered_line(inputs_.facts.round, std::move(recovered_), took));
  recovers_ = false;
  tell_spares();
}

// When the round is over here, so that what a rank did is known also if it got SIGKILL.
void RoundRunner::record_steps() {
  if (std::exchange(steps_recorded_, true)) return;
  std::optional<StepSpan> all;
  for (const LocalRank rank : local_ranks()) {
    const auto its = links_.last_step(rank);
    if (!its || !its->first) continue;
    const StepSpan span{*its->first, its->step, its->first_ago, its->ago, 1};
    all = all ? common(*all, span) : span;
  }
  if (all) inputs_.events.record(steps_event(inputs_.facts.round, *all));
}

// Those that are kept hold what they hold.
void RoundRunner::tell_devices() {
  const std::vector<LocalRank> kept = round_->released();
  std::vector<WorkerName> ended;
  std::vector<std::string> marks;
  for (const LocalRank rank : local_ranks()) {
    if (std::find(kept.begin(), kept.end(), rank) != kept.end()) {
      marks.push_back(worker(rank).mark);
    } else if (worker(rank).child) {
      ended.push_back(name_of(rank));
    }
  }
  if (inputs_.spares) {
    for (std::string& mark : inputs_.spares->marks()) marks.push_back(std::move(mark));
  }
  inputs_.devices.round_over(inputs_.facts.round, std::move(ended), std::move(marks));
}

void end_workers(const CarriedWorkers& carried) {
  for (const CarriedWorker& one : carried.all) kill_all_of(*one.worker);
}

}  // namespace ddprun
