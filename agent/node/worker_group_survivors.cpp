// Workers that survive a change of the round: how they are held for the next one, and carried over
// into it (docs/SURVIVORS.md).
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

void WorkerGroup::on(const Survives& event) {
  record(event.rank).survives = event.survives;
}

void WorkerGroup::on(const Joined& event) {
  WorkerRecord& worker = record(event.rank);
  const bool counts = worker.life == WorkerRecord::Life::kRunning && worker.first_signal == 0;
  if (!counts || worker.carried != WorkerRecord::Carried::kTold) return;
  worker.carried = WorkerRecord::Carried::kNo;
  if (state_ == GroupState::kHealthy) watch_joins();
}

bool WorkerGroup::runs_here() const {
  return state_ < GroupState::kStraggling;
}

// Of a carried worker that has ended, or was ended, before it took the round. No failure: the round
// has not begun for it.
void WorkerGroup::start_again(LocalRank rank, bool left) {
  record(rank) = WorkerRecord{};
  record(rank).again = true;
  actions_.push_back(LogAgain{rank});
  if (!left) return spawn_again(rank);
  record(rank).life = WorkerRecord::Life::kLeaving;
  actions_.push_back(Signal{rank, SIGKILL});
}

// Before all run, its turn comes, or is now.
void WorkerGroup::spawn_again(LocalRank rank) {
  const bool ordered = spawning_ == rank;
  const bool now = ordered || state_ == GroupState::kHealthy;
  record(rank).life = now ? WorkerRecord::Life::kSpawning : WorkerRecord::Life::kWaiting;
  if (now && !ordered) actions_.push_back(Spawn{rank});
}

// The round that it was in is over for it, and for all, if they finish that as well. It is not
// started again: no other rank may be left that has its state.
void WorkerGroup::finish_before(const Exited& event) {
  WorkerRecord& worker = record(event.rank);
  const bool left = event.left == LeftBehind::kProcesses;
  worker.life = left ? WorkerRecord::Life::kLeaving : WorkerRecord::Life::kEnded;
  worker.carried = WorkerRecord::Carried::kFinished;
  worker.status = event.status;
  if (state_ != GroupState::kHealthy) return;  // its turn comes, and is over
  watch_joins();
  finish_if_nothing_is_left();
}

void WorkerGroup::on(const PutOff& event) {
  DDPRUN_ASSERT(record(event.rank).status || record(event.rank).again);
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
    if (deadline_ == TimePoint()) arm(*rejoin_timeout_);
    return;
  }
  recovers_ = false;
  deadline_ = {};
  actions_.push_back(Disarm{});
  if (!any_finished_before()) actions_.push_back(Recovered{});
}

// What SIGKILL does not end here, the next round has to do without this node.
void WorkerGroup::on_join_timer() {
  const bool stuck = std::any_of(workers_.begin(), workers_.end(), [](const WorkerRecord& worker) {
    const bool killed = worker.last_signal == SIGKILL;
    return (worker.again && worker.life == WorkerRecord::Life::kLeaving) ||
           (killed && worker.life == WorkerRecord::Life::kRunning);
  });
  if (stuck) return begin_stop(SIGTERM);
  for (const LocalRank rank : running()) {
    if (record(rank).carried != WorkerRecord::Carried::kNo) send(rank, SIGKILL);
  }
  arm(kWaitAfterKill);
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

bool WorkerGroup::may_grow() const {
  return state_ == GroupState::kHealthy &&
         std::all_of(workers_.begin(), workers_.end(), [](const WorkerRecord& worker) {
           const bool runs = worker.life == WorkerRecord::Life::kRunning && worker.survives;
           const bool done = worker.status && worker.status->success();
           return (runs || done) && worker.first_signal == 0 &&
                  worker.carried == WorkerRecord::Carried::kNo;
         });
}

bool WorkerGroup::finished_before() const {
  return std::all_of(workers_.begin(), workers_.end(), [](const WorkerRecord& worker) {
    return worker.carried == WorkerRecord::Carried::kFinished;
  });
}

bool WorkerGroup::is_torn() const {
  const bool any_here = std::any_of(workers_.begin(), workers_.end(), [](const auto& worker) {
    return worker.carried == WorkerRecord::Carried::kNo;
  });
  return any_here && any_finished_before();
}

bool WorkerGroup::has_left_before() const {
  return grows_ && state_ == GroupState::kHealthy && !recovers_ && !any_finished_before();
}

bool WorkerGroup::any_finished_before() const {
  return std::any_of(workers_.begin(), workers_.end(), [](const WorkerRecord& worker) {
    return worker.carried == WorkerRecord::Carried::kFinished;
  });
}

bool WorkerGroup::any_to_start_again() const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [](const WorkerRecord& worker) { return worker.again; });
}

}  // namespace ddprun
