#include "agent/node/worker_group.hpp"

#include <signal.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/assert.hpp"

namespace ddprun {

namespace {

constexpr std::size_t kStates = 11;
constexpr std::size_t kEvents = std::variant_size_v<GroupEvent>;

// Rows: GroupState; columns: Start, Spawned, SpawnFailed, Exited, StopRequested, TimerExpired,
// StopOrdered, GroupEmptied, GivenUp, StacksAsked, Survives, Joined, PutOff.
constexpr std::array<std::array<int, kEvents>, kStates> kPossible{{
    {1, 0, 0, 1, 1, 0, 1, 1, 0, 0, 0, 0, 0},  // init: of the workers, the carried ones run
    {0, 1, 1, 1, 1, 0, 1, 1, 0, 0, 1, 1, 1},  // starting
    {0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 0},  // healthy: one that has not joined is started again
    {0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0},  // straggling
    {0, 0, 1, 1, 1, 1, 1, 1, 0, 1, 0, 1, 0},  // stopping: a spawn that was on its way is given up
    {0, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 1, 0},  // killing
    {0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 1, 0},  // holding: it was told before
    {0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 1, 0},  // released
    {0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0},  // succeeded: a signal, while output is drained
    {0, 0, 0, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0},  // failed: what was given up as unkillable may end
    {0, 0, 0, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0},  // stopped
}};

}  // namespace

WorkerGroup::WorkerGroup(Options options)
    : shutdown_timeout_(options.shutdown_timeout),
      straggler_timeout_(options.straggler_timeout),
      rejoin_timeout_(options.rejoin_timeout),
      failure_grace_(options.failure_grace),
      may_be_last_(options.may_be_last),
      recovers_(!options.carried.empty()),
      stop_rule_{SIGTERM, options.shutdown_timeout} {
  DDPRUN_ASSERT(options.workers > 0);
  workers_.resize(static_cast<std::size_t>(options.workers));
  for (const LocalRank rank : options.carried) {
    record(rank).life = WorkerRecord::Life::kRunning;
    record(rank).carried = WorkerRecord::Carried::kWaits;
    record(rank).survives = true;
  }
  for (const LocalRank rank : options.finished) {
    record(rank).finished_before = true;
  }
  for (const LocalRank rank : options.spares) record(rank).is_spare = true;
}

bool WorkerGroup::possible(GroupState state, const GroupEvent& event) {
  return kPossible.at(static_cast<std::size_t>(state)).at(event.index()) != 0;
}

GroupActions WorkerGroup::step(const GroupEvent& event, TimePoint now) {
  DDPRUN_ASSERT(possible(state_, event));
  actions_.clear();
  now_ = now;
  std::visit([&](const auto& one) { on(one); }, event);
  return std::exchange(actions_, {});
}

void WorkerGroup::on(const Start&) {
  state_ = GroupState::kStarting;
  tell_if_all_finished();
  spawn_next();
}

void WorkerGroup::on(const Spawned& event) {
  WorkerRecord& worker = record(event.rank);
  if (worker.carried == WorkerRecord::Carried::kWaits) {
    worker.carried = WorkerRecord::Carried::kTold;
    worker.untold = !event.told;
  } else {
    DDPRUN_ASSERT(worker.life == WorkerRecord::Life::kSpawning);
    worker.life = WorkerRecord::Life::kRunning;
    worker.again = false;
  }
  spawning_.reset();
  if (state_ == GroupState::kHealthy) return watch_joins();
  spawn_next();
}

void WorkerGroup::on(const SpawnFailed& event) {
  spawning_.reset();
  WorkerRecord& worker = record(event.rank);
  if (worker.life == WorkerRecord::Life::kSpawning) {  // else a carried one, which runs
    worker.life = WorkerRecord::Life::kNeverStarted;
  }
  if (!runs_here()) return over() ? void() : finish_if_nothing_is_left();
  spawn_failure_ = event;
  begin_stop(SIGTERM);
}

void WorkerGroup::on(const Exited& event) {
  WorkerRecord& worker = record(event.rank);
  const bool held = worker.life == WorkerRecord::Life::kHeld;
  DDPRUN_ASSERT(held || worker.life == WorkerRecord::Life::kRunning);
  const bool left = event.left == LeftBehind::kProcesses;
  const bool not_joined = worker.carried != WorkerRecord::Carried::kNo;
  if (!held && not_joined && runs_here()) return start_again(event);
  worker.life = left ? WorkerRecord::Life::kLeaving : WorkerRecord::Life::kEnded;
  worker.status = event.status;
  worker.ended_at = now_;
  if (not_joined) worker.finished_before = worker.finished_before || finished(event);
  if (held) return on_held_exit(event.rank);
  // In a stop it is an answer to the signal, or to the loss of a peer.
  if (runs_here() && is_first_failure({now_, event.status, worker.first_signal}, failed_at_)) {
    return on_first_failure(event.rank);
  }
  if (!over()) finish_if_nothing_is_left();
}

void WorkerGroup::on_first_failure(LocalRank rank) {
  first_failure_ = rank;
  failed_at_ = now_;
  actions_.push_back(FirstFailure{rank});
  stop_rule_.stacks = true;
  hold_survivors();
  begin_stop(SIGTERM, may_be_last_ ? failure_grace_ : Duration::zero());
  if (!over()) actions_.push_back(LogFailure{rank});
}

void WorkerGroup::on(const GroupEmptied& event) {
  DDPRUN_ASSERT(record(event.rank).life == WorkerRecord::Life::kLeaving);
  if (record(event.rank).again && runs_here()) return spawn_again(event.rank);
  record(event.rank).life = WorkerRecord::Life::kEnded;
  if (!over()) finish_if_nothing_is_left();
}

// A failure like an exit, but of a worker that has to be stopped like the others.
void WorkerGroup::on(const GivenUp& event) {
  DDPRUN_ASSERT(record(event.rank).life == WorkerRecord::Life::kRunning);
  first_failure_ = event.rank;
  failed_at_ = now_;
  stop_rule_.stacks = true;
  begin_stop(SIGTERM);
  actions_.push_back(LogFailure{event.rank});
}

void WorkerGroup::on(const StopRequested& event) {
  if (over() && state_ != GroupState::kReleased) return;
  const bool second = stop_signal_ != 0;
  if (second) {
    if (state_ == GroupState::kStopping && is_forced_stop(event.signal)) advance_stop();
    return;
  }
  stop_signal_ = event.signal;
  requested_ = true;
  stop_rule_.stacks = false;
  if (state_ == GroupState::kStraggling) {
    // It may hurry them, not give them more time than they had.
    stop_rule_.grace = std::min(shutdown_timeout_, *stragglers_due_ + kStragglerGrace - now_);
  }
  if (take_held_back() || state_ < GroupState::kStopping) {
    stop_anew(event.signal);
  } else if (spared_until()) {
    stop_rule_.signal = event.signal;
    end_spare();
  } else if (state_ == GroupState::kStopping && event.signal != stop_rule_.signal) {
    // A stop is under way: the workers also get this signal, the deadline stays. The same one twice
    // would be a second request, as where a scheduler stops every node.
    send_to_all(event.signal);
  }
  if (any_worker_left()) return actions_.push_back(LogStop{event.signal});
  log_left_behind(event.signal);
}

void WorkerGroup::on(const TimerExpired& event) {
  if (over() || event.deadline != deadline_) return;
  if (state_ == GroupState::kStraggling) return on_straggler_timer(event.left);
  if (state_ == GroupState::kHealthy) return on_join_timer();
  advance_stop();
}

void WorkerGroup::on(const StopOrdered& event) {
  if (event.then != StopOrdered::Then::kEnd && rejoin_timeout_) return give_way(event);
  const bool took_back = take_held_back();
  const bool spares = event.cause == StopOrdered::Cause::kFailure;
  // What is under way ends the others as well.
  if (!took_back && state_ >= GroupState::kStopping) return spares ? void() : end_spare();
  stop_rule_.grace = event.grace;
  stop_rule_.stacks = event.stacks;
  requested_ = requested_ || event.cause == StopOrdered::Cause::kRequest;
  stop_anew(event.signal, spares ? failure_grace_ : Duration::zero());
}

void WorkerGroup::on(const StacksAsked& event) {
  DDPRUN_ASSERT(stop_order_.stage == StopStage::kAsked);
  for (const LocalRank rank : event.ranks) record(rank).asked = true;
  if (event.ranks.empty()) return advance_stop();
  arm(stop_order_.grace);
}

// Carried workers first: they are told at once, while a start may have to wait.
void WorkerGroup::spawn_next() {
  const auto carried = [](const WorkerRecord& worker) {
    return worker.carried == WorkerRecord::Carried::kWaits;
  };
  auto next = std::find_if(workers_.begin(), workers_.end(), carried);
  if (next == workers_.end()) {
    next = std::find_if(workers_.begin(), workers_.end(), [](const WorkerRecord& worker) {
      return worker.life == WorkerRecord::Life::kWaiting;
    });
    if (next != workers_.end()) next->life = WorkerRecord::Life::kSpawning;
  }
  if (next != workers_.end()) {
    spawning_ = LocalRank(static_cast<int>(next - workers_.begin()));
    return actions_.push_back(Spawn{*spawning_});
  }
  state_ = GroupState::kHealthy;
  actions_.push_back(AllRunning{});
  watch_joins();
  finish_if_nothing_is_left();
}

// For those that had no part in the stop before: they have the whole grace.
void WorkerGroup::stop_anew(int signal, Duration spare) {
  stop_order_ = {StopStage::kNone, 0, Duration::zero()};
  begin_stop(signal, spare);
}

// What a dead worker left has its own time, after the signal.
void WorkerGroup::begin_stop(int signal, Duration spare) {
  stop_rule_.signal = signal;
  stop_rule_.spare = any_worker_left() ? spare : Duration::zero();
  state_ = GroupState::kStopping;
  if (!anything_left()) return finish_if_nothing_is_left();
  advance_stop();
}

void WorkerGroup::end_spare() {
  if (spared_until()) advance_stop();
}

// Nothing is left that could save anything: what ignores the signal does not delay a restart.
void WorkerGroup::limit_what_is_left() {
  const bool signalled =
      state_ == GroupState::kStopping && stop_order_.stage == StopStage::kSignalled;
  if (!signalled || requested_ || any_worker_left()) return;
  TimePoint since = signalled_at_;
  for (const LocalRank rank : leaving()) since = std::max(since, record(rank).ended_at);
  const TimePoint due = since + std::min(kStragglerGrace, stop_rule_.grace);
  if (due < deadline_) arm(due - now_);
}

void WorkerGroup::begin_straggling() {
  state_ = GroupState::kStraggling;
  stragglers_.emplace(straggler_timeout_);
  stragglers_->begin(now_);
  stragglers_due_ = now_ + straggler_timeout_;
  stragglers_told_at_ = now_ + kStragglersQuietMax;
  arm(Duration::zero());  // for the first sample
}

void WorkerGroup::on_straggler_timer(const std::vector<RankProgress>& left) {
  const Duration quiet = stragglers_->sample(left, now_);
  stragglers_due_ = now_ + straggler_timeout_ - std::min(quiet, straggler_timeout_);
  if (now_ < *stragglers_due_) {
    const bool tells = stragglers_told_at_ && now_ >= *stragglers_told_at_;
    if (tells) log_left_behind(0);
    if (tells) stragglers_told_at_.reset();
    const TimePoint told_at = stragglers_told_at_.value_or(TimePoint::max());
    return arm(std::min({*stragglers_due_, stragglers_->next(), told_at}) - now_);
  }
  log_left_behind(SIGTERM, straggler_timeout_ > Duration::zero());
  stop_rule_.grace = std::min(kStragglerGrace, shutdown_timeout_);
  begin_stop(SIGTERM);
}

void WorkerGroup::advance_stop() {
  stop_order_ = next_stop_order(stop_order_.stage, stop_rule_);
  if (stop_order_.stage == StopStage::kAbandoned) {
    // This node leaves the run: no next round comes for those that are held.
    return take_held_back() ? stop_anew(SIGTERM) : finish(ended_state());
  }
  if (stop_order_.stage == StopStage::kAsked) return actions_.push_back(AskStacks{});
  if (stop_order_.stage == StopStage::kSpared) {
    spared_since_ = now_;
    return arm(stop_order_.grace);
  }
  if (stop_order_.stage == StopStage::kSignalled) {
    signalled_at_ = now_;
    if (!stop_began_) stop_began_ = now_;
    const auto since = std::exchange(spared_since_, std::nullopt);
    if (since && any_worker_left()) spared_ = now_ - *since;
  }
  if (stop_order_.stage == StopStage::kKilled) {
    state_ = GroupState::kKilling;
    log_left_behind(SIGKILL);
  }
  send_to_all(stop_order_.signal);
  const bool limited =
      stop_order_.stage == StopStage::kSignalled && !requested_ && !any_worker_left();
  arm(limited ? std::min(kStragglerGrace, stop_order_.grace) : stop_order_.grace);
}

void WorkerGroup::log_left_behind(int signal, bool quiet) {
  for (const LocalRank rank : leaving()) actions_.push_back(LogLeftBehind{rank, signal, quiet});
}

void WorkerGroup::arm(Duration from_now) {
  deadline_ = now_ + from_now;
  actions_.push_back(ArmTimer{deadline_});
}

void WorkerGroup::send(LocalRank rank, int signal) {
  WorkerRecord& worker = record(rank);
  if (worker.first_signal == 0) worker.first_signal = signal;
  worker.last_signal = signal;
  actions_.push_back(Signal{rank, signal, spares_pipe_ends()});
}

void WorkerGroup::send_to_all(int signal) {
  for (const LocalRank rank : running()) send(rank, signal);
  for (const LocalRank rank : leaving()) {
    actions_.push_back(Signal{rank, signal, spares_pipe_ends()});
  }
}

void WorkerGroup::finish_if_nothing_is_left() {
  const bool more_to_spawn = state_ == GroupState::kStarting;
  if (more_to_spawn || any_worker_left()) return;
  const bool succeeded = state_ == GroupState::kHealthy;
  if (!anything_left() && !held().empty()) {
    hold();
  } else if (!anything_left()) {
    finish(succeeded ? GroupState::kSucceeded : ended_state());
  } else if (succeeded) {
    begin_straggling();
  } else {
    end_spare();
    limit_what_is_left();
  }
  // Last, because the shell may answer it with the next event.
  if (succeeded) actions_.push_back(AllSucceeded{});
}

void WorkerGroup::finish(GroupState state) {
  if (state_ != GroupState::kHolding) over_at_ = now_;
  state_ = state;
  actions_.push_back(Finish{});
}

GroupState WorkerGroup::ended_state() const {
  if (stragglers_due_) return GroupState::kSucceeded;  // whatever came of what they left behind
  return first_failure_ || spawn_failure_ ? GroupState::kFailed : GroupState::kStopped;
}

bool WorkerGroup::any_worker_left() const {
  return any({WorkerRecord::Life::kRunning, WorkerRecord::Life::kSpawning}) ||
         (state_ == GroupState::kHealthy && any_to_start_again());
}

bool WorkerGroup::anything_left() const {
  return any_worker_left() || any({WorkerRecord::Life::kLeaving});
}

bool WorkerGroup::any(std::initializer_list<WorkerRecord::Life> lives) const {
  return std::any_of(workers_.begin(), workers_.end(), [lives](const WorkerRecord& worker) {
    return std::find(lives.begin(), lives.end(), worker.life) != lives.end();
  });
}

bool WorkerRecord::had_to_be_killed() const {
  return asked || last_signal == SIGKILL;
}

Duration WorkerGroup::stop_took() const {
  return stop_began_ ? over_at_ - *stop_began_ : Duration::zero();
}

std::vector<LocalRank> WorkerGroup::succeeded() const {
  std::vector<LocalRank> ranks;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    const WorkerRecord& worker = workers_[i];
    const bool itself = worker.status && worker.status->success() && worker.first_signal == 0;
    if (itself) ranks.emplace_back(static_cast<int>(i));
  }
  return ranks;
}

std::vector<LocalRank> WorkerGroup::all(WorkerRecord::Life life) const {
  std::vector<LocalRank> ranks;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    if (workers_[i].life == life) ranks.emplace_back(static_cast<int>(i));
  }
  return ranks;
}

const WorkerRecord& WorkerGroup::worker(LocalRank rank) const {
  return workers_.at(static_cast<std::size_t>(rank.value()));
}

WorkerRecord& WorkerGroup::record(LocalRank rank) {
  return workers_.at(static_cast<std::size_t>(rank.value()));
}

}  // namespace ddprun
