#include "agent/node/round_driver.hpp"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "agent/report/complaint.hpp"
#include "base/assert.hpp"

namespace ddprun {

RoundDriver::RoundDriver(RoundPorts& ports, Round round, WorkerGroup::Options options,
                         TimePoint run_started, Elsewhere elsewhere, Round before)
    : ports_(ports),
      round_(round),
      before_(before),
      group_(options),
      run_started_(run_started),
      elsewhere_(elsewhere),
      straggler_timeout_(options.straggler_timeout),
      keeps_survivors_(options.rejoin_timeout.has_value()),
      carried_(options.carried.size()),
      since_(ports.now()),
      workers_(static_cast<std::size_t>(options.workers)) {}

void RoundDriver::begin() {
  if (group_.state() == GroupState::kInit) step(Start{});
}

void RoundDriver::request_stop(int signal) {
  end_hearing();
  step(StopRequested{signal});
  give_up_opening();
}

void RoundDriver::end(int signal, Duration grace, Then then, Cause cause) {
  if (cause == Cause::kFailure) group_.run_ends();
  end_hearing();
  ask_survivors();
  step(StopOrdered{signal, grace, !looked_.empty(), then, cause});
  give_up_opening();
}

void RoundDriver::end(const client::StopGroup& order) {
  using Order = client::StopGroup::Then;
  end(order.signal, order.grace,
      order.then == Order::kNextRound ? Then::kNextRound
      : order.then == Order::kWait    ? Then::kWait
                                      : Then::kEnd,
      order.after_failure ? Cause::kFailure
      : order.requested   ? Cause::kRequest
                          : Cause::kRound);
}

RoundDriver::PassedOn RoundDriver::pass_on(int signal, bool force) {
  using Answer = RoundPorts::Answer;
  PassedOn passed;
  for (const LocalRank rank : living()) {
    const Answer answer = force ? Answer::kTakes : ports_.answer_to(rank, signal);
    if (answer == Answer::kEnds) passed.ends.push_back(ports_.name_of(rank).rank);
    if (answer != Answer::kTakes) continue;
    worker(rank).passed.add(signal);
    ports_.signal_worker(rank, signal);  // alone: its data loaders rarely expect a signal
    ++passed.ranks;
  }
  return passed;
}

std::vector<Rank> RoundDriver::ended_by(int signal) const {
  std::vector<Rank> ranks;
  for (const LocalRank rank : living()) {
    const bool ends = ports_.answer_to(rank, signal) == RoundPorts::Answer::kEnds;
    if (ends) ranks.push_back(ports_.name_of(rank).rank);
  }
  return ranks;
}

std::vector<LocalRank> RoundDriver::living() const {
  std::vector<LocalRank> ranks = group_.running();
  const std::vector<LocalRank> held = group_.held();
  ranks.insert(ranks.end(), held.begin(), held.end());
  std::erase_if(ranks, [this](LocalRank rank) { return worker(rank).exit.has_value(); });
  return ranks;
}

void RoundDriver::timer_expired(TimePoint deadline) {
  TimerExpired expired{deadline};
  if (group_.state() == GroupState::kStraggling) {
    expired.left = ports_.progress_of_left(group_.leaving());
  }
  step(expired);
}

void RoundDriver::step(const GroupEvent& event) {
  ports_.on_event(event);
  const GroupActions actions = group_.step(event, ports_.now());
  ports_.on_step();
  for (const GroupAction& action : actions) {
    std::visit([this](const auto& alternative) { act(alternative); }, action);
  }
  if (!group_.over()) ended_ = false;  // what was released was taken back
  end_if_over();
}

void RoundDriver::act(const Spawn& action) {
  if (files_are_there_) return ports_.post_spawn(action.rank);
  opening_ = action.rank;
  awaits_devices_ = ports_.await_devices();
  ports_.open_files();
}

void RoundDriver::act(const Signal& action) {
  note_raised();
  Worker& target = worker(action.rank);
  if (group_.first_failure() && !target.exit && !target.may_obey) {
    target.may_obey = ports_.may_handle(action.rank, action.signal);
  }
  if (action.spares_pipe_ends) return ports_.kill_but_pipe_ends(action.rank);
  ports_.signal_group(action.rank, action.signal);
}

void RoundDriver::act(const ArmTimer& action) {
  ports_.arm_timer(action.deadline);
}

void RoundDriver::act(const LogFailure&) {
  death_logged_ = RoundResult::Logged::kYes;
  ports_.log_failure(first_failure(), running());
}

void RoundDriver::act(const LogStop& action) {
  ports_.log_stop(action.signal, running());
}

void RoundDriver::act(const LogLeftBehind& action) {
  const Worker& left = worker(action.rank);
  LeftBehindFacts facts;
  facts.names = ports_.left_behind(action.rank);
  if (facts.names.empty()) return;  // gone by now
  facts.worker = left.exit->worker;
  facts.signal = action.signal;
  facts.quiet = action.quiet;
  facts.since_exit = ports_.now() - left.exited_at;
  facts.timeout = straggler_timeout_;
  ports_.log_left_behind(facts);
}

void RoundDriver::act(const Finish&) {
  ports_.cancel_timer();
}

void RoundDriver::act(const AllRunning&) {
  since_ = ports_.now();
  ports_.tell(client::GroupRunning{round_});
}

void RoundDriver::act(const AllSucceeded&) {
  ports_.tell(client::GroupSucceeded{round_});
}

void RoundDriver::act(const FirstFailure& action) {
  ports_.catch_up(action.rank);
}

void RoundDriver::act(const Disarm&) {
  ports_.cancel_timer();
}

void RoundDriver::act(const LogAgain& action) {
  ports_.log_again(ports_.name_of(action.rank), worker(action.rank).exit->status);
}

void RoundDriver::act(const Recovered&) {
  ports_.recovered({static_cast<int>(workers_.size() - started_), static_cast<int>(started_)});
}

RoundDriver::Trained RoundDriver::trained() const {
  using Taken = WorkerGroup::Taken;
  const Taken taken = group_.taken();
  if (taken == Taken::kBySome) return {};
  const bool told = group_.outcome() == GroupState::kSucceeded;
  return {taken == Taken::kByAll ? round_ : before_,
          told ? std::vector<LocalRank>() : group_.finished()};
}

void RoundDriver::act(const FinishedRoundBefore&) {
  if (before_ > Round(0)) ports_.tell(client::FinishedBefore{round_, before_});
}

void RoundDriver::act(const AskStacks&) {
  step(StacksAsked{ports_.abort_with_stacks(group_.running())});
}

void RoundDriver::files_opened(const Result<void>& logs, const Result<void>& program) {
  DDPRUN_ASSERT(opening_);
  const auto fail = [this](const Error& error, SpawnFailed::What what) {
    fail_to_spawn({*std::exchange(opening_, std::nullopt), error, what});
  };
  if (!logs) return fail(logs.error(), SpawnFailed::What::kLogFiles);
  if (!program) return fail(program.error(), SpawnFailed::What::kWorker);
  files_are_there_ = true;
  open_if_ready();
}

void RoundDriver::devices_released() {
  awaits_devices_ = false;
  open_if_ready();
}

void RoundDriver::open_if_ready() {
  if (!opening_ || !files_are_there_ || awaits_devices_) return;
  spawn(*std::exchange(opening_, std::nullopt));
}

// Nothing was started yet, and neither a file system that stalls nor a device is waited for.
void RoundDriver::give_up_opening() {
  if (!opening_) return;
  if (!files_are_there_) ports_.give_up_files();
  give_up_spawn(*std::exchange(opening_, std::nullopt));
}

void RoundDriver::give_up_spawn(LocalRank rank) {
  // A carried worker runs: it is stopped, or held, like the others.
  const bool on_its_way = group_.worker(rank).life == WorkerRecord::Life::kSpawning;
  if (on_its_way) step(SpawnFailed{rank, {}});
}

void RoundDriver::spawn(LocalRank rank) {
  // A stop came between the order and now: it would only be started to be stopped.
  if (!runs_here()) return give_up_spawn(rank);
  // What was there before it has SIGKILL, and may take its time.
  const WorkerRecord& record = group_.worker(rank);
  if (record.life == WorkerRecord::Life::kLeaving) return step(PutOff{rank});
  if (record.carried == WorkerRecord::Carried::kWaits) {
    return step(Spawned{rank, ports_.tell_round(rank)});
  }
  if (ports_.await_room(rank)) return;
  const auto started = start(rank);
  if (!started) return fail_to_spawn({rank, started.error()});
  step(Spawned{rank});
}

Result<void> RoundDriver::start(LocalRank rank) {
  worker(rank) = Worker();  // of one that was started again
  if (carried_ > 0) ++started_;
  return ports_.start_worker(rank);
}

void RoundDriver::fail_to_spawn(const SpawnFailed& failure) {
  step(failure);
  ports_.spawn_failed(failure);
}

void RoundDriver::exited(LocalRank rank, ExitStatus status, LeftBehind left) {
  Worker& ended = worker(rank);
  ended.exited_at = ports_.now();
  WorkerExit& exit = ended.exit.emplace(ports_.describe_exit(rank));
  exit.status = status;
  exit.passed_signal = ended.passed.explaining(status);
  set_times(exit, ended.exited_at);
  const WorkerRecord& record = group_.worker(rank);
  ended.by_itself = record.first_signal == 0 && runs_here();
  const bool not_joined = record.carried != WorkerRecord::Carried::kNo;
  const bool held = record.life == WorkerRecord::Life::kHeld;
  const bool out_of_round = held || not_joined;
  if (out_of_round) return take(Exited{rank, status, left});  // what it says is of an older round
  if (may_be_witness(status)) {
    held_.push_back({Exited{rank, status, left}});
    return ports_.look_for_complaint(rank, status);
  }
  if (!status.success() && !held_.empty()) {  // what the witnesses may have seen
    held_.insert(held_.begin(), {Exited{rank, status, left}, true});
    return end_hearing();
  }
  take(Exited{rank, status, left});
  if (all_heard()) end_hearing();
}

int RoundDriver::running() const {
  const std::vector<LocalRank> ranks = group_.running();
  return static_cast<int>(std::count_if(ranks.begin(), ranks.end(),
                                        [this](LocalRank rank) { return !worker(rank).exit; }));
}

void RoundDriver::take(const Exited& exit) {
  // First, because the evidence may be there at once, and the others are stopped before it is
  // reported.
  const bool first = !group_.first_failure();
  if (!exit.status.success()) ask_survivors();
  step(exit);
  if (first && group_.first_failure() == exit.rank) ports_.look_for_evidence(exit.rank);
}

bool RoundDriver::may_be_witness(const ExitStatus& status) const {
  const GroupState state = group_.state();
  const bool runs = state == GroupState::kStarting || state == GroupState::kHealthy;
  return runs && follows_from_complaint(status);
}

// A failure of its own ends the others at once, and is the first even if a witness was faster.
void RoundDriver::complaint_found(LocalRank rank, std::optional<Complaint> complaint) {
  const auto held = std::find_if(held_.begin(), held_.end(), [rank](const Held& its) {
    return its.exit.rank == rank && !its.heard;
  });
  if (held == held_.end()) return;  // a stop was faster
  held->heard = true;
  const bool own = !complaint;
  worker(rank).exit->complaint = std::move(complaint);
  if (own) {
    std::rotate(held_.begin(), held, held + 1);
    return end_hearing();
  }
  if (all_heard()) return end_hearing();
  if (!std::exchange(hearing_, true)) ports_.arm_hearing(ports_.now() + kHearing);
}

// No other rank is left that could say more. What ranks of other nodes do is learned there.
bool RoundDriver::all_heard() const {
  if (elsewhere_ == Elsewhere::kRanks) return false;
  if (held_.empty() || group_.state() != GroupState::kHealthy) return false;
  const bool heard =
      std::all_of(held_.begin(), held_.end(), [](const Held& held) { return held.heard; });
  return heard && group_.running().size() == held_.size();
}

void RoundDriver::hearing_over() {
  if (hearing_) end_hearing();
}

void RoundDriver::end_hearing() {
  if (held_.empty()) return;
  hearing_ = false;
  const std::vector<Held> held = std::exchange(held_, {});
  if (worker(held.front().exit.rank).exit->complaint) look();
  for (const Held& its : held) take(its.exit);
}

void RoundDriver::emptied(LocalRank rank) {
  for (Held& held : held_) {
    if (held.exit.rank != rank) continue;
    held.exit.left = LeftBehind::kNothing;
    return;
  }
  step(GroupEmptied{rank});
}

// Before what may change the round.
void RoundDriver::ask_survivors() {
  const GroupState state = group_.state();
  const bool counts = state == GroupState::kStarting || state == GroupState::kHealthy;
  if (!keeps_survivors_ || !counts) return;
  for (const LocalRank rank : group_.running()) step(Survives{rank, ports_.survives(rank)});
}

void RoundDriver::joined(LocalRank rank) {
  if (WorkerGroup::possible(group_.state(), Joined{rank})) step(Joined{rank});
}

void RoundDriver::survives(LocalRank rank) {
  const GroupState state = group_.state();
  const bool counts = state == GroupState::kStarting || state == GroupState::kHealthy;
  if (keeps_survivors_ && counts) step(Survives{rank});
}

void RoundDriver::look() {
  if (!looked_.empty() || group_.state() > GroupState::kHealthy) return;
  looked_at_ = ports_.now();
  looked_ = ports_.look_at_ranks();
  waits_ = ports_.look_at_store();
}

/// A rank that is slow to exit may be why others failed first: before a stop makes them write, all
/// are looked at. An older exception was survived.
void RoundDriver::note_raised() {
  if (runs_here() || std::exchange(raised_noted_, true)) return;
  for (const LocalRank rank : group_.running()) {
    if (worker(rank).exit) continue;
    const RoundPorts::Raised raised = ports_.raised(rank);
    if (ports_.now() - raised.at < kRaisedMax) worker(rank).raised = raised;
  }
}

void RoundDriver::give_up(const GiveUp& order) {
  // While stacks were read, a worker may have ended or failed, or the round.
  const std::vector<LocalRank> running = group_.running();
  if (!held_.empty() || group_.state() != GroupState::kHealthy || running.empty()) return;
  ports_.gave_up(order);
  const bool runs = std::find(running.begin(), running.end(), order.rank) != running.end();
  const LocalRank rank = runs ? order.rank : running.front();
  given_up_ = ports_.describe_exit(rank);
  given_up_->status = ExitStatus::exited(order.exit_code);
  given_up_->given_up = order.why;
  given_up_->log = order.log;
  set_times(*given_up_, ports_.now());
  step(GivenUp{rank});
  failure_reported_ = true;
  ports_.tell(client::GroupFailed{round_, *given_up_});
  end_if_over();
}

void RoundDriver::set_times(WorkerExit& exit, TimePoint at) const {
  using std::chrono::milliseconds;
  exit.since_start = std::chrono::duration_cast<milliseconds>(at - run_started_);
  exit.after = std::chrono::duration_cast<milliseconds>(at - since_);
}

const WorkerExit& RoundDriver::first_failure() const {
  return given_up_ ? *given_up_ : *worker(*group_.first_failure()).exit;
}

void RoundDriver::evidence_found(RawEvidence raw) {
  WorkerExit& exit = *worker(*group_.first_failure()).exit;
  add_evidence(exit, raw);
  error_json_ = std::move(raw.error_json);
  failure_reported_ = true;
  ports_.tell(client::GroupFailed{round_, exit});
  end_if_over();
}

void RoundDriver::end_if_over() {
  if (!over() || std::exchange(ended_, true)) return;
  ports_.round_over();
}

RoundDriver::Worker& RoundDriver::worker(LocalRank rank) {
  return workers_.at(static_cast<std::size_t>(rank.value()));
}

const RoundDriver::Worker& RoundDriver::worker(LocalRank rank) const {
  return workers_.at(static_cast<std::size_t>(rank.value()));
}

}  // namespace ddprun
