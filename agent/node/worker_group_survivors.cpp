// Workers that survive a change of the round: how they are held for the next one, and carried over
// into it (docs/RECOVERY.md).
#include <signal.h>

#include <algorithm>
#include <utility>

#include "agent/node/worker_group.hpp"
#include "base/assert.hpp"
#include "base/limits.hpp"

namespace ddprun {

// Those that survive have no part in a stop that is under way.
void WorkerGroup::give_way(const StopOrdered& event) {
  const bool again = state_ == GroupState::kReleased;
  if ((over() && !again) || stop_signal_ != 0) return;
  released_ = event.then == StopOrdered::Then::kNextRound;
  end_spare();
  if (state_ < GroupState::kStopping) {
    stop_rule_.grace = event.grace;
    stop_rule_.stacks = event.stacks;
    hold_survivors();
    begin_stop(event.signal);
  } else if (state_ == GroupState::kHolding || again) {
    hold();
  }
}

void WorkerGroup::on(const Joined& event) {
  WorkerRecord& worker = record(event.rank);
  const bool runs = worker.life == WorkerRecord::Life::kRunning && worker.first_signal == 0;
  const bool counts = runs || worker.life == WorkerRecord::Life::kHeld;
  if (!counts || worker.carried != WorkerRecord::Carried::kTold) return;
  worker.carried = WorkerRecord::Carried::kNo;
  worker.is_spare = false;
  if (state_ == GroupState::kHealthy) watch_joins();
}

// Of a carried worker that has ended, or was ended, before it took the round. No failure: the round
// has not begun for it. If all ranks of the run end with 0 so, it has succeeded meanwhile.
void WorkerGroup::start_again(const Exited& event) {
  WorkerRecord& worker = record(event.rank);
  const bool has_finished = worker.finished_before || finished(event);
  const bool untold = worker.untold;
  worker = WorkerRecord{};
  worker.again = true;
  worker.finished_before = has_finished;
  actions_.push_back(LogAgain{event.rank, untold});
  tell_if_all_finished();
  if (event.left == LeftBehind::kNothing) return spawn_again(event.rank);
  worker.life = WorkerRecord::Life::kLeaving;
  worker.killed_at = now_;
  actions_.push_back(Signal{event.rank, SIGKILL});
}

/// Of a carried worker that has not taken this round: the one before, by itself.
bool WorkerGroup::finished(const Exited& event) const {
  const WorkerRecord& ended = worker(event.rank);
  return event.status.success() && ended.first_signal == 0 && !ended.is_spare;
}

void WorkerGroup::tell_if_all_finished() {
  const bool all = std::all_of(workers_.begin(), workers_.end(),
                               [](const WorkerRecord& one) { return one.finished_before; });
  if (all) actions_.push_back(FinishedRoundBefore{});
}

// Before all run, its turn comes, or is now.
void WorkerGroup::spawn_again(LocalRank rank) {
  const bool ordered = spawning_ == rank;
  const bool now = ordered || state_ == GroupState::kHealthy;
  record(rank).life = now ? WorkerRecord::Life::kSpawning : WorkerRecord::Life::kWaiting;
  if (now && !ordered) actions_.push_back(Spawn{rank});
}

void WorkerGroup::on(const PutOff& event) {
  DDPRUN_ASSERT(record(event.rank).again);
  spawning_.reset();
  spawn_next();
}

// Once all run: until those that were carried have taken the round, or were started again.
void WorkerGroup::watch_joins() {
  if (!recovers_) return;
  const bool waits = std::any_of(workers_.begin(), workers_.end(), [](const WorkerRecord& worker) {
    return worker.carried == WorkerRecord::Carried::kWaits ||
           worker.carried == WorkerRecord::Carried::kTold;
  });
  if (waits || any_to_start_again()) {
    if (deadline_ != TimePoint()) return;
    joins_since_ = now_;
    return arm_join_timer();
  }
  recovers_ = false;
  deadline_ = {};
  actions_.push_back(Disarm{});
  actions_.push_back(Recovered{});
}

/// Whether the round waits for it, or for what it left.
bool WorkerRecord::keeps_waiting() const {
  return (carried != Carried::kNo && life == Life::kRunning) || (again && life == Life::kLeaving);
}

/// Then such a worker gets SIGKILL; or, if that was sent, is no longer waited for.
TimePoint WorkerGroup::joins_until(const WorkerRecord& worker) const {
  const TimePoint all = joins_since_ + *rejoin_timeout_;
  const TimePoint killed = worker.killed_at + kWaitAfterKill;
  if (worker.life == WorkerRecord::Life::kLeaving) return std::max(all, killed);
  if (worker.last_signal == SIGKILL) return killed;
  return worker.untold ? std::min(all, joins_since_ + kUntoldMax) : all;
}

void WorkerGroup::arm_join_timer() {
  std::optional<TimePoint> next;
  for (const WorkerRecord& worker : workers_) {
    if (!worker.keeps_waiting()) continue;
    const TimePoint until = joins_until(worker);
    next = next ? std::min(*next, until) : until;
  }
  arm(next ? *next - now_ : Duration(kWaitAfterKill));
}

// What SIGKILL does not end here, the next round has to do without this node.
void WorkerGroup::on_join_timer() {
  const auto is_due = [this](const WorkerRecord& worker) {
    return worker.keeps_waiting() && joins_until(worker) <= deadline_;
  };
  const bool stuck = std::any_of(workers_.begin(), workers_.end(), [&](const auto& worker) {
    const bool killed =
        worker.life == WorkerRecord::Life::kLeaving || worker.last_signal == SIGKILL;
    return killed && is_due(worker);
  });
  if (stuck) return begin_stop(SIGTERM);
  for (const LocalRank rank : running()) {
    if (!is_due(worker(rank))) continue;
    record(rank).killed_at = now_;
    send(rank, SIGKILL);
  }
  arm_join_timer();
}

void WorkerGroup::hold_survivors() {
  if (!rejoin_timeout_) return;
  for (WorkerRecord& worker : workers_) {
    const bool runs = worker.life == WorkerRecord::Life::kRunning && worker.first_signal == 0;
    if (runs && worker.survives) worker.life = WorkerRecord::Life::kHeld;
  }
}

bool WorkerGroup::take_held_back() {
  const std::vector<LocalRank> ranks = held();
  for (const LocalRank rank : ranks) record(rank).life = WorkerRecord::Life::kRunning;
  const bool settled = state_ == GroupState::kHolding || state_ == GroupState::kReleased;
  if (settled) stop_began_.reset();  // how long they were held is no part of their stop
  released_ = false;
  return !ranks.empty();
}

// It may have left something, which is stopped like all that is not held: after the failure grace.
void WorkerGroup::on_held_exit(LocalRank rank) {
  const bool settled = state_ == GroupState::kHolding || state_ == GroupState::kReleased;
  const bool left = record(rank).life == WorkerRecord::Life::kLeaving;
  if (!settled && (!left || spared_until())) return finish_if_nothing_is_left();
  if (!settled) {
    const bool kills = state_ == GroupState::kKilling;
    actions_.push_back(Signal{rank, kills ? SIGKILL : stop_rule_.signal});
    return kills ? arm(stop_order_.grace) : void();
  }
  if (left) return stop_anew(SIGTERM);
  if (!held().empty()) return;
  if (state_ == GroupState::kHolding) return finish(ended_state());
  state_ = ended_state();
}

void WorkerGroup::hold() {
  if (released_) return state_ == GroupState::kReleased ? void() : finish(GroupState::kReleased);
  state_ = GroupState::kHolding;
  over_at_ = now_;
  deadline_ = {};
  actions_.push_back(Disarm{});
}

WorkerGroup::Taken WorkerGroup::taken() const {
  const bool waits = std::any_of(workers_.begin(), workers_.end(), [](const WorkerRecord& worker) {
    return worker.carried != WorkerRecord::Carried::kNo;
  });
  if (!waits && !any_to_start_again()) return Taken::kByAll;
  const bool some = std::any_of(workers_.begin(), workers_.end(), [](const WorkerRecord& worker) {
    const bool runs = worker.life >= WorkerRecord::Life::kRunning && !worker.again;
    return runs && worker.carried == WorkerRecord::Carried::kNo && !worker.finished_before;
  });
  return some ? Taken::kBySome : Taken::kByNone;
}

std::vector<LocalRank> WorkerGroup::finished() const {
  if (taken() == Taken::kByAll) return succeeded();
  std::vector<LocalRank> ranks;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    if (workers_[i].finished_before) ranks.emplace_back(static_cast<int>(i));
  }
  return ranks;
}

bool WorkerGroup::any_to_start_again() const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [](const WorkerRecord& worker) { return worker.again; });
}

}  // namespace ddprun
