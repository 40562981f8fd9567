#include "agent/node/round_driver.hpp"

#include <signal.h>

#include <utility>

#include "base/assert.hpp"

namespace ddprun {

RoundDriver::RoundDriver(RoundPorts& ports, WorkerGroup::Options options, TimePoint run_started)
    : ports_(ports),
      group_(options),
      run_started_(run_started),
      straggler_timeout_(options.straggler_timeout),
      since_(ports.now()),
      workers_(static_cast<std::size_t>(options.workers)) {}

void RoundDriver::begin() {
  if (!group_.over()) step(Start{});
}

void RoundDriver::request_stop(int signal) {
  step(StopRequested{signal});
  give_up_files();
}

void RoundDriver::end(int signal, Duration grace) {
  step(StopOrdered{signal, grace});
  give_up_files();
}

void RoundDriver::pass_on(int signal) {
  for (const LocalRank rank : group_.running()) {
    worker(rank).passed_signal = signal;
    ports_.signal_worker(rank, signal);  // alone: its data loaders rarely expect a signal
  }
}

void RoundDriver::step(const GroupEvent& event) {
  ports_.on_event(event);
  const GroupActions actions = group_.step(event, ports_.now());
  ports_.on_step();
  for (const GroupAction& action : actions) {
    std::visit([this](const auto& alternative) { act(alternative); }, action);
  }
  end_if_over();
}

void RoundDriver::act(const Spawn& action) {
  if (files_are_there_) return ports_.post_spawn(action.rank);
  opening_ = action.rank;
  ports_.open_files();
}

void RoundDriver::act(const Signal& action) {
  ports_.signal_group(action.rank, action.signal);
}

void RoundDriver::act(const ArmTimer& action) {
  ports_.arm_timer(action.deadline);
}

void RoundDriver::act(const LogFailure& action) {
  death_logged_ = RoundResult::Logged::kYes;
  ports_.log_failure(*worker(action.rank).exit, running());
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
  facts.since_exit = ports_.now() - left.exited_at;
  facts.timeout = straggler_timeout_;
  ports_.log_left_behind(facts);
}

void RoundDriver::act(const Finish&) {
  ports_.cancel_timer();
}

void RoundDriver::act(const AllRunning&) {
  since_ = ports_.now();
  ports_.running();
}

void RoundDriver::act(const AllSucceeded&) {
  ports_.succeeded();
}

void RoundDriver::act(const FirstFailure& action) {
  ports_.catch_up(action.rank);
}

void RoundDriver::files_opened(const Result<void>& logs, const Result<void>& program) {
  DDPRUN_ASSERT(opening_);
  const LocalRank first = *std::exchange(opening_, std::nullopt);
  if (!logs) return fail_to_spawn({first, logs.error(), SpawnFailed::What::kLogFiles});
  if (!program) return fail_to_spawn({first, program.error()});
  files_are_there_ = true;
  spawn(first);
}

// Nothing was started yet, and a file system that stalls is not waited for.
void RoundDriver::give_up_files() {
  if (!opening_) return;
  ports_.give_up_files();
  step(SpawnFailed{*std::exchange(opening_, std::nullopt), {}});
}

void RoundDriver::spawn(LocalRank rank) {
  // A stop came between the order and now: it would only be started to be stopped.
  if (group_.state() != GroupState::kStarting) return step(SpawnFailed{rank, {}});
  const auto started = ports_.start_worker(rank);
  if (!started) return fail_to_spawn({rank, started.error()});
  step(Spawned{rank});
}

void RoundDriver::fail_to_spawn(const SpawnFailed& failure) {
  step(failure);
  ports_.spawn_failed(failure);
}

void RoundDriver::exited(LocalRank rank, ExitStatus status, LeftBehind left) {
  using std::chrono::milliseconds;
  Worker& ended = worker(rank);
  ended.exited_at = ports_.now();
  WorkerExit& exit = ended.exit.emplace(ports_.describe_exit(rank));
  exit.status = status;
  exit.passed_signal = ended.passed_signal;
  exit.since_start = std::chrono::duration_cast<milliseconds>(ended.exited_at - run_started_);
  exit.after = std::chrono::duration_cast<milliseconds>(ended.exited_at - since_);
  // First, because the evidence may be there at once, and the others are stopped before it is
  // reported.
  step(Exited{rank, status, left});
  if (group_.first_failure() == rank) ports_.look_for_evidence(rank);
}

void RoundDriver::evidence_found(RawEvidence raw) {
  WorkerExit& exit = *worker(*group_.first_failure()).exit;
  add_evidence(exit, raw);
  error_json_ = std::move(raw.error_json);
  failure_reported_ = true;
  ports_.failed(exit);
  end_if_over();
}

void RoundDriver::end_if_over() {
  if (!over() || std::exchange(ended_, true)) return;
  ports_.round_over();
}

RoundResult RoundDriver::result() const {
  RoundResult all;
  all.state = group_.state();
  if (group_.first_failure()) all.failure = worker(*group_.first_failure()).exit;
  all.error_json = error_json_;
  all.death_logged = death_logged_;
  all.stop_took = group_.stop_took();
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    const WorkerRecord& ended = group_.worker(LocalRank(static_cast<int>(i)));
    if (!ended.status) continue;
    if (ended.first_signal != 0) ++all.stopped;
    if (ended.last_signal == SIGKILL) ++all.killed;
  }
  for (const LocalRank rank : group_.running()) {
    all.unkillable.push_back({ports_.name_of(rank), ""});
  }
  for (const LocalRank rank : group_.leaving()) {
    all.unkillable.push_back({ports_.name_of(rank), left_behind_text(ports_.left_behind(rank))});
  }
  return all;
}

RoundDriver::Worker& RoundDriver::worker(LocalRank rank) {
  return workers_.at(static_cast<std::size_t>(rank.value()));
}

const RoundDriver::Worker& RoundDriver::worker(LocalRank rank) const {
  return workers_.at(static_cast<std::size_t>(rank.value()));
}

}  // namespace ddprun
