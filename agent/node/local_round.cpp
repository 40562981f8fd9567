#include "agent/node/local_round.hpp"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "agent/report/complaint.hpp"
#include "base/assert.hpp"

namespace ddprun {

StopOrdered local::stop_ordered(const client::StopGroup& order) {
  using Order = client::StopGroup::Then;
  using Then = StopOrdered::Then;
  using Cause = StopOrdered::Cause;
  StopOrdered stop{order.signal, order.grace};
  stop.then = order.then == Order::kNextRound ? Then::kNextRound
              : order.then == Order::kWait    ? Then::kWait
                                              : Then::kEnd;
  stop.cause = order.after_failure ? Cause::kFailure
               : order.requested   ? Cause::kRequest
                                   : Cause::kRound;
  return stop;
}

LocalRound::LocalRound(Options options, TimePoint now)
    : options_(std::move(options)),
      group_(options_.group),
      now_(now),
      since_(now),
      workers_(static_cast<std::size_t>(options_.group.workers)) {}

local::Actions LocalRound::step(const local::Event& event, TimePoint now) {
  now_ = now;
  actions_.clear();
  std::visit([this](const auto& one) { on(one); }, event);
  return std::exchange(actions_, {});
}

void LocalRound::tell_group(const GroupEvent& event) {
  if (const auto* exited = std::get_if<Exited>(&event)) {
    const int sent = group_.worker(exited->rank).first_signal;
    actions_.emplace_back(local::ExitTaken{exited->rank, exited->status, sent});
  } else if (const auto* failed = std::get_if<SpawnFailed>(&event)) {
    actions_.emplace_back(local::SpawnGivenUp{*failed});
  }
  for (const GroupAction& action : group_.step(event, now_)) {
    std::visit([this](const auto& one) { act(one); }, action);
  }
  if (!group_.over()) ended_ = false;  // what was released was taken back
  end_if_over();
}

void LocalRound::on(const local::Begin&) {
  if (group_.state() == GroupState::kInit) tell_group(Start{});
}

void LocalRound::on(const StopRequested& event) {
  end_hearing();
  tell_group(event);
  give_up_opening();
}

void LocalRound::on(const StopOrdered& event) {
  if (event.cause == StopOrdered::Cause::kFailure) group_.run_ends();
  end_hearing();
  StopOrdered order = event;
  order.stacks = looks_;
  tell_group(order);
  give_up_opening();
}

void LocalRound::on(const StacksAsked& event) {
  tell_group(event);
}

void LocalRound::act(const Spawn& action) {
  if (files_are_there_) return void(actions_.emplace_back(local::PostSpawn{action.rank}));
  opening_ = action.rank;
  awaits_devices_ = true;
  actions_.emplace_back(local::AwaitDevices{});
  actions_.emplace_back(local::OpenFiles{});
}

// A stop tells the first of each signal. A worker that has not taken the round is killed alone.
void LocalRound::act(const Signal& action) {
  const bool alone = group_.state() == GroupState::kHealthy;
  if (alone || action.signal != std::exchange(told_signal_, action.signal)) {
    const auto workers = alone ? 1 : static_cast<int>(group_.running().size());
    actions_.emplace_back(local::SignalsBegin{action.signal, workers});
  }
  note_raised();
  actions_.emplace_back(action);
}

void LocalRound::act(const LogFailure&) {
  death_logged_ = RoundResult::Logged::kYes;
  actions_.emplace_back(local::LogFailure{first_failure(), running()});
}

void LocalRound::act(const LogStop&) {
  actions_.emplace_back(local::LogStop{running()});
}

void LocalRound::act(const LogLeftBehind& action) {
  const Duration since_exit = now_ - worker(action.rank).exited_at;
  actions_.emplace_back(local::LogLeftBehind{action.rank, action.signal, action.quiet, since_exit});
}

void LocalRound::act(const Finish&) {
  actions_.emplace_back(local::CancelTimer{});
}

void LocalRound::act(const AllRunning&) {
  since_ = now_;
  tell(client::GroupRunning{options_.round});
}

void LocalRound::act(const AllSucceeded&) {
  tell(client::GroupSucceeded{options_.round});
}

void LocalRound::act(const LogAgain& action) {
  const WorkerExit& exit = *worker(action.rank).exit;
  actions_.emplace_back(local::LogAgain{exit.worker, exit.status, action.untold});
}

void LocalRound::act(const Recovered&) {
  const auto kept = static_cast<int>(workers_.size() - started_);
  actions_.emplace_back(local::LogRecovery{{kept, static_cast<int>(started_)}});
}

void LocalRound::act(const FinishedRoundBefore&) {
  const Round before = options_.before;
  if (before > Round(0)) tell(client::FinishedBefore{options_.round, before});
}

void LocalRound::on(const local::FilesOpened& event) {
  DDPRUN_ASSERT(opening_);
  const auto fail = [this](const Error& error, SpawnFailed::What what) {
    fail_to_spawn({*std::exchange(opening_, std::nullopt), error, what});
  };
  if (!event.logs) return fail(event.logs.error(), SpawnFailed::What::kLogFiles);
  if (!event.program) return fail(event.program.error(), SpawnFailed::What::kWorker);
  files_are_there_ = true;
  open_if_ready();
}

void LocalRound::on(const local::DevicesReleased&) {
  awaits_devices_ = false;
  open_if_ready();
}

void LocalRound::open_if_ready() {
  if (!opening_ || !files_are_there_ || awaits_devices_) return;
  spawn(*std::exchange(opening_, std::nullopt));
}

// Nothing was started yet, and neither a file system that stalls nor a device is waited for.
void LocalRound::give_up_opening() {
  if (!opening_) return;
  if (!files_are_there_) actions_.emplace_back(local::GiveUpFiles{});
  give_up_spawn(*std::exchange(opening_, std::nullopt));
}

void LocalRound::give_up_spawn(LocalRank rank) {
  // A carried worker runs: it is stopped, or held, like the others.
  const bool on_its_way = group_.worker(rank).life == WorkerRecord::Life::kSpawning;
  if (on_its_way) tell_group(SpawnFailed{rank, {}});
}

void LocalRound::spawn(LocalRank rank) {
  // A stop came between the order and now: it would only be started to be stopped.
  if (!runs_here()) return give_up_spawn(rank);
  // The processes of the worker before it have SIGKILL, and may take their time.
  const WorkerRecord& record = group_.worker(rank);
  if (record.life == WorkerRecord::Life::kLeaving) return tell_group(PutOff{rank});
  if (record.carried == WorkerRecord::Carried::kWaits) {
    return void(actions_.emplace_back(local::TellRound{rank}));
  }
  actions_.emplace_back(local::StartWorker{rank});
}

void LocalRound::on(const local::Started& event) {
  worker(event.rank) = Worker();  // of one that was started again
  if (!options_.group.carried.empty()) ++started_;
  if (!event.started) return fail_to_spawn({event.rank, event.started.error()});
  tell_group(Spawned{event.rank});
}

void LocalRound::fail_to_spawn(const SpawnFailed& failure) {
  tell_group(failure);
  actions_.emplace_back(local::TellSpawnFailed{failure});
}

void LocalRound::on(const local::Exited& event) {
  const LocalRank rank = event.exit.worker.local_rank;
  const ExitStatus status = event.exit.status;
  Worker& ended = worker(rank);
  ended.exit = event.exit;
  ended.exited_at = now_;
  ended.may_obey = event.may_obey;
  set_times(*ended.exit);
  const WorkerRecord& record = group_.worker(rank);
  ended.by_itself = record.first_signal == 0 && runs_here();
  const bool not_joined = record.carried != WorkerRecord::Carried::kNo;
  const bool out_of_round = record.life == WorkerRecord::Life::kHeld || not_joined;
  const Exited exit{rank, status, event.left};
  if (out_of_round) return take(exit);  // what it says is of an older round
  if (may_be_witness(status)) {
    held_.push_back({exit});
    return void(actions_.emplace_back(local::LookForComplaint{rank}));
  }
  if (!status.success() && !held_.empty()) {  // what the witnesses may have seen
    held_.insert(held_.begin(), {exit, true});
    return end_hearing();
  }
  take(exit);
  if (all_heard()) end_hearing();
}

void LocalRound::take(const Exited& exit) {
  // First, because the evidence may be there at once, and the others are stopped before it is
  // reported.
  const bool first = !group_.first_failure();
  tell_group(exit);
  if (first && group_.first_failure() == exit.rank) {
    actions_.emplace_back(local::LookForEvidence{exit.rank});
  }
}

void LocalRound::on(const local::Emptied& event) {
  for (Held& held : held_) {
    if (held.exit.rank != event.rank) continue;
    held.exit.left = LeftBehind::kNothing;
    return;
  }
  tell_group(GroupEmptied{event.rank});
}

void LocalRound::on(const local::Survives& event) {
  const GroupState state = group_.state();
  const bool counts = state == GroupState::kStarting || state == GroupState::kHealthy;
  if (options_.group.rejoin_timeout && counts) tell_group(Survives{event.rank, event.survives});
}

void LocalRound::on(const local::Joined& event) {
  const Joined joined{event.rank};
  if (WorkerGroup::possible(group_.state(), joined)) tell_group(joined);
}

bool LocalRound::may_be_witness(const ExitStatus& status) const {
  const GroupState state = group_.state();
  const bool runs = state == GroupState::kStarting || state == GroupState::kHealthy;
  return runs && follows_from_complaint(status);
}

// A failure of its own ends the others at once, and is the first even if a witness was faster.
void LocalRound::on(const local::ComplaintFound& event) {
  const auto held = std::find_if(held_.begin(), held_.end(), [&event](const Held& its) {
    return its.exit.rank == event.rank && !its.heard;
  });
  if (held == held_.end()) return;  // a stop was faster
  held->heard = true;
  worker(event.rank).exit->complaint = event.complaint;
  if (!event.complaint) {
    std::rotate(held_.begin(), held, held + 1);
    return end_hearing();
  }
  if (all_heard()) return end_hearing();
  if (std::exchange(hearing_, true)) return;
  actions_.emplace_back(local::ArmHearing{now_ + kHearing});
}

// No other rank is left that could say more. What ranks of other nodes do is learned there.
bool LocalRound::all_heard() const {
  if (options_.elsewhere == Elsewhere::kRanks) return false;
  if (held_.empty() || group_.state() != GroupState::kHealthy) return false;
  const bool heard =
      std::all_of(held_.begin(), held_.end(), [](const Held& held) { return held.heard; });
  return heard && group_.running().size() == held_.size();
}

void LocalRound::on(const local::HearingOver&) {
  if (hearing_) end_hearing();
}

void LocalRound::end_hearing() {
  if (held_.empty()) return;
  hearing_ = false;
  const std::vector<Held> held = std::exchange(held_, {});
  if (worker(held.front().exit.rank).exit->complaint) look();
  for (const Held& its : held) take(its.exit);
}

void LocalRound::look() {
  if (looks_ || group_.state() > GroupState::kHealthy) return;
  looks_ = true;
  actions_.emplace_back(local::Look{});
}

void LocalRound::on(const local::Looked& event) {
  looked_at_ = now_;
  looked_ = event.ranks;
  waits_ = event.waits;
}

/// A rank that is slow to exit may be why others failed first: before a stop makes them write, all
/// are looked at. An older exception was survived.
void LocalRound::note_raised() {
  if (runs_here() || std::exchange(raised_noted_, true)) return;
  local::ReadRaised read;
  for (const LocalRank rank : group_.running()) {
    if (!worker(rank).exit) read.ranks.push_back(rank);
  }
  if (!read.ranks.empty()) actions_.emplace_back(std::move(read));
}

void LocalRound::on(const local::RaisedFound& event) {
  for (const auto& [rank, raised] : event.ranks) {
    if (now_ - raised.at < kRaisedMax) worker(rank).raised = raised;
  }
}

// While stacks were read, a worker may have ended or failed, or the round.
std::optional<LocalRank> LocalRound::rank_of(const GiveUp& order) const {
  const std::vector<LocalRank> running = group_.running();
  const bool counts = held_.empty() && group_.state() == GroupState::kHealthy && !running.empty();
  if (!counts) return std::nullopt;
  const bool runs = std::find(running.begin(), running.end(), order.rank) != running.end();
  return runs ? order.rank : running.front();
}

void LocalRound::on(const local::GiveUpAsked& event) {
  const std::optional<LocalRank> rank = rank_of(event.order);
  if (!rank) return;
  actions_.emplace_back(local::GaveUp{event.order});
  given_up_ = event.exit;
  given_up_->status = ExitStatus::exited(event.order.exit_code);
  given_up_->given_up = event.order.why;
  given_up_->log = event.order.log;
  set_times(*given_up_);
  tell_group(GivenUp{*rank});
  failure_reported_ = true;
  tell(client::GroupFailed{options_.round, *given_up_});
  end_if_over();
}

void LocalRound::on(const local::EvidenceFound& event) {
  WorkerExit& exit = *worker(*group_.first_failure()).exit;
  add_evidence(exit, event.raw);
  error_json_ = event.raw.error_json;
  failure_reported_ = true;
  tell(client::GroupFailed{options_.round, exit});
  end_if_over();
}

void LocalRound::end_if_over() {
  if (!over() || std::exchange(ended_, true)) return;
  actions_.emplace_back(local::Over{});
}

void LocalRound::set_times(WorkerExit& exit) const {
  using std::chrono::milliseconds;
  exit.since_start = std::chrono::duration_cast<milliseconds>(now_ - options_.run_started);
  exit.after = std::chrono::duration_cast<milliseconds>(now_ - since_);
}

const WorkerExit& LocalRound::first_failure() const {
  return given_up_ ? *given_up_ : *worker(*group_.first_failure()).exit;
}

int LocalRound::running() const {
  const std::vector<LocalRank> ranks = group_.running();
  return static_cast<int>(std::count_if(ranks.begin(), ranks.end(),
                                        [this](LocalRank rank) { return !has_exited(rank); }));
}

std::vector<LocalRank> LocalRound::living() const {
  std::vector<LocalRank> ranks = group_.running();
  const std::vector<LocalRank> held = group_.held();
  ranks.insert(ranks.end(), held.begin(), held.end());
  std::erase_if(ranks, [this](LocalRank rank) { return has_exited(rank); });
  return ranks;
}

LocalRound::Worker& LocalRound::worker(LocalRank rank) {
  return workers_.at(static_cast<std::size_t>(rank.value()));
}

const LocalRound::Worker& LocalRound::worker(LocalRank rank) const {
  return workers_.at(static_cast<std::size_t>(rank.value()));
}

}  // namespace ddprun
