#include "agent/round.hpp"

#include <signal.h>
#include <spdlog/logger.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "agent/core/report.hpp"
#include "agent/file_text.hpp"
#include "agent/proc/limits.hpp"
#include "agent/proc/spawn.hpp"
#include "agent/proc/tail.hpp"

namespace ddprun {

namespace asio = boost::asio;

RoundRunner::RoundRunner(asio::any_io_executor executor, RoundInputs inputs)
    : executor_(executor),
      inputs_(std::move(inputs)),
      group_({inputs_.config.workers.count, inputs_.config.stopping.shutdown_timeout,
              inputs_.config.stopping.straggler_timeout}),
      since_(Clock::now()),
      stop_timer_(executor),
      finished_(executor, TimePoint::max()) {
  for (int i = 0; i < inputs_.config.workers.count; ++i)
    workers_.push_back(std::make_unique<Worker>());
}

asio::awaitable<RoundResult> RoundRunner::run() {
  if (!group_.over()) step(Start{});
  boost::system::error_code cancelled;
  while (!group_.over() || failure_is_untold()) {
    co_await finished_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
  }
  co_await drain_outputs();
  co_return result();
}

void RoundRunner::request_stop(int signal) {
  step(StopRequested{signal});
  // Then the end has nothing to wait for.
  if (opening_ && !inputs_.disk.has_writes()) inputs_.disk.hurry();
  give_up_opening();
}

void RoundRunner::end(int signal, Duration grace) {
  step(StopOrdered{signal, grace});
  give_up_opening();
}

void RoundRunner::pass_on(int signal) {
  for (const LocalRank rank : group_.running()) {
    Worker& one = worker(rank);
    one.passed_signal = signal;
    ::kill(one.child->pid(), signal);  // the rank alone: its data loaders rarely expect a signal
  }
}

void RoundRunner::step(const GroupEvent& event) {
  for (const GroupAction& action : group_.step(event, Clock::now())) {
    std::visit([this](const auto& one) { act(one); }, action);
  }
}

void RoundRunner::act(const Spawn& action) {
  if (!output_) return open_files(action.rank);
  // Between two spawns, signals and exits are looked at.
  asio::post(executor_,
             [self = shared_from_this(), rank = action.rank] { self->spawn_worker(rank); });
}

void RoundRunner::act(const Signal& action) {
  worker(action.rank).child->signal_group(action.signal);
}

void RoundRunner::act(const ArmTimer& action) {
  stop_timer_.expires_at(action.deadline);
  stop_timer_.async_wait([self = shared_from_this(), deadline = action.deadline](const auto& why) {
    if (!why) self->step(TimerExpired{deadline});
  });
}

void RoundRunner::act(const TellFailure& action) {
  const int others = static_cast<int>(group_.running().size());
  inputs_.logger.warn(death_line(*worker(action.rank).exit, others));
  death_told_ = RoundResult::Told::kYes;
}

void RoundRunner::act(const TellStop& action) {
  inputs_.logger.info(stop_line(action.signal, static_cast<int>(group_.running().size()),
                                inputs_.config.stopping.shutdown_timeout));
}

void RoundRunner::act(const Finish&) {
  stop_timer_.cancel();
  finished_.cancel();
}

void RoundRunner::act(const AllRunning&) {
  since_ = Clock::now();
  if (inputs_.hooks.running) inputs_.hooks.running();
}

void RoundRunner::act(const AllSucceeded&) {
  if (inputs_.hooks.succeeded) inputs_.hooks.succeeded();
}

void RoundRunner::act(const FirstFailure& action) {
  worker(action.rank).output->catch_up();
}

void RoundRunner::open_files(LocalRank first) {
  const auto files = std::make_shared<std::optional<Files>>();
  const std::string& program = inputs_.config.workers.command.front();
  const std::string what = "the program " + program + " or the log directory " + inputs_.log_place;
  opening_.emplace(Opening{first, {executor_, inputs_.logger, what, TimePoint::max()}});
  inputs_.disk.post(
      [files, open = inputs_.open_output, name = program,
       path = value_or(inputs_.environment, "PATH", "")] {
        files->emplace(Files{find_program(name, path), open()});
      },
      [self = shared_from_this(), files, first] { self->on_files(first, std::move(**files)); });
}

void RoundRunner::on_files(LocalRank first, Files files) {
  if (!opening_) return;  // given up meanwhile
  opening_.reset();
  if (!files.output) {
    return fail_to_spawn({first, files.output.error(), SpawnFailed::What::kLogFiles});
  }
  output_.emplace(std::move(*files.output));
  for (int i = 0; i < inputs_.config.workers.count; ++i) {
    const LocalRank rank(i);
    Worker& one = worker(rank);
    one.plan = plan_worker(inputs_.config, inputs_.environment, inputs_.facts, rank,
                           output_->logs.error_file(rank));
    one.output_plan = plan_output(inputs_.config, *output_, rank, one.plan.rank);
  }
  if (inputs_.hooks.opened) inputs_.hooks.opened();
  if (!files.program) return fail_to_spawn({first, files.program.error()});
  program_ = *files.program;
  spawn_worker(first);
}

// Nothing was started yet, and a file system that stalls is not waited for.
void RoundRunner::give_up_opening() {
  if (!opening_) return;
  const LocalRank first = opening_->first;
  opening_.reset();
  step(SpawnFailed{first, {}});
}

void RoundRunner::act(const TellLeftBehind& action) {
  const Worker& left = worker(action.rank);
  LeftBehindFacts facts;
  facts.names = left_behind(action.rank);
  if (facts.names.empty()) return;  // gone by now
  facts.worker = left.exit->worker;
  facts.signal = action.signal;
  facts.since_exit = Clock::now() - left.exited_at;
  facts.timeout = inputs_.config.stopping.straggler_timeout;
  inputs_.logger.info(left_behind_line(facts));
}

void RoundRunner::spawn_worker(LocalRank rank) {
  Worker& one = worker(rank);
  const auto started = start_worker(one);
  if (!started) return fail_to_spawn({rank, started.error()});
  asio::co_spawn(executor_, watch(shared_from_this(), rank), [](std::exception_ptr bug) {
    if (bug) std::rethrow_exception(bug);
  });
  step(Spawned{rank});
}

void RoundRunner::fail_to_spawn(const SpawnFailed& failure) {
  step(failure);
  const auto& told = group_.spawn_failure();
  if (told && told->rank == failure.rank && inputs_.hooks.spawn_failed) {
    inputs_.hooks.spawn_failed(*told);
  }
}

Result<void> RoundRunner::start_worker(Worker& one) {
  auto output = WorkerOutput::open(executor_, inputs_.consoles, one.output_plan);
  if (!output) return output.error();
  one.output.emplace(std::move(*output));
  SpawnRequest request;
  request.program = program_;
  request.argv = one.plan.argv;
  request.environment = to_block(one.plan.environment);
  request.stdout_fd = one.output->descriptor(Stream::kStdout);
  request.stderr_fd = one.output->descriptor(Stream::kStderr);
  request.descriptor_limit = inputs_.descriptor_limit;
  auto child = spawn(executor_, request);
  one.output->start();
  if (!child) return child.error();
  one.child.emplace(std::move(*child));
  inputs_.orphans.except(one.child->pid());
  return {};
}

asio::awaitable<void> RoundRunner::watch(std::shared_ptr<RoundRunner> self, LocalRank rank) {
  Child& child = *self->worker(rank).child;
  const auto status = co_await child.wait();
  self->inputs_.orphans.no_longer_except(child.pid());
  // Only a parent that reaps behind our back makes wait() fail; what happened to the worker is
  // unknown then.
  self->on_exit(rank, status ? *status : ExitStatus::exited(1));
  if (child.left_behind() == nullptr) co_return;
  co_await child.left_behind()->wait_until_empty();
  self->step(GroupEmptied{rank});
}

void RoundRunner::on_exit(LocalRank rank, ExitStatus status) {
  Worker& one = worker(rank);
  using std::chrono::milliseconds;
  one.exited_at = Clock::now();
  WorkerExit& exit = one.exit.emplace();
  exit.worker = name_of(rank);
  exit.status = status;
  exit.passed_signal = one.passed_signal;
  exit.when = std::chrono::time_point_cast<milliseconds>(std::chrono::system_clock::now());
  exit.since_start = std::chrono::duration_cast<milliseconds>(one.exited_at - inputs_.run_started);
  exit.after = std::chrono::duration_cast<milliseconds>(one.exited_at - since_);
  exit.log = log_to_name(one.output_plan);
  const bool left = one.child->left_behind() != nullptr;
  // First, because the files may be looked into before look_into_files() returns.
  step(Exited{rank, status, left ? LeftBehind::kProcesses : LeftBehind::kNothing});
  if (group_.first_failure() != rank) return;
  asio::co_spawn(executor_, look_into_files(shared_from_this(), rank), [](std::exception_ptr bug) {
    if (bug) std::rethrow_exception(bug);
  });
}

WorkerName RoundRunner::name_of(LocalRank rank) const {
  const Worker& named = worker(rank);
  return {named.plan.rank, rank, named.child->pid(), inputs_.hostname};
}

std::vector<std::string> RoundRunner::left_behind(LocalRank rank) const {
  const ProcessGroup* group = worker(rank).child->left_behind();
  return group == nullptr ? std::vector<std::string>() : group->names();
}

asio::awaitable<void> RoundRunner::look_into_files(std::shared_ptr<RoundRunner> self,
                                                   LocalRank first) {
  Worker& failed = self->worker(first);
  std::function<RawEvidence()> look = [error_file = self->output_->logs.error_file(first),
                                       log = unseen_stderr(failed.output_plan)] {
    return RawEvidence{read_file(error_file), tail_of_file(log, kTailBytesMax)};
  };
  const TimePoint deadline = Clock::now() + kEvidenceMax;
  auto found = co_await run_on<RawEvidence>(self->inputs_.disk, std::move(look), deadline);
  RawEvidence raw = found ? std::move(*found) : RawEvidence{};
  raw.stderr_tail = failed.output->tail() + raw.stderr_tail;  // it has one of them
  add_evidence(*failed.exit, raw);
  self->error_json_ = std::move(raw.error_json);
  self->failure_told_ = true;
  if (self->inputs_.hooks.failed) self->inputs_.hooks.failed(*failed.exit);
  self->finished_.cancel();
}

asio::awaitable<void> RoundRunner::drain_outputs() {
  const TimePoint deadline = Clock::now() + kDrainMax;
  for (const auto& one : workers_) {
    if (!one->exit) continue;
    co_await one->output->drain(deadline);
  }
}

RoundResult RoundRunner::result() const {
  RoundResult all;
  all.state = group_.state();
  if (group_.first_failure()) all.failure = worker(*group_.first_failure()).exit;
  all.error_json = error_json_;
  all.death_told = death_told_;
  all.stop_took = group_.stop_took();
  for (int i = 0; i < inputs_.config.workers.count; ++i) {
    const WorkerRecord& ended = group_.worker(LocalRank(i));
    if (!ended.status) continue;
    if (ended.first_signal != 0) ++all.stopped;
    if (ended.last_signal == SIGKILL) ++all.killed;
  }
  for (const LocalRank rank : group_.running()) all.unkillable.push_back({name_of(rank), ""});
  for (const LocalRank rank : group_.leaving()) {
    all.unkillable.push_back({name_of(rank), left_behind_text(left_behind(rank))});
  }
  return all;
}

RoundRunner::Worker& RoundRunner::worker(LocalRank rank) {
  return *workers_.at(static_cast<std::size_t>(rank.value()));
}

const RoundRunner::Worker& RoundRunner::worker(LocalRank rank) const {
  return *workers_.at(static_cast<std::size_t>(rank.value()));
}

}  // namespace ddprun
