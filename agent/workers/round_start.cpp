// How a round begins: its files, the devices, and its workers, which may start from a template
// (--warm).
#include <spdlog/logger.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "agent/events/run_events.hpp"
#include "agent/proc/program.hpp"
#include "agent/warm/processes.hpp"
#include "agent/watch/watch_lines.hpp"
#include "agent/workers/round.hpp"
#include "base/format.hpp"
#include "base/macros.hpp"
#include "base/message_line.hpp"
#include "base/printable.hpp"
#include "net/bugs.hpp"

namespace ddprun {

namespace asio = boost::asio;

void RoundRunner::act(const local::OpenFiles&) {
  const auto files = std::make_shared<std::optional<Files>>();
  const std::string& program = inputs_.config.workers.command.front();
  const std::string what = "the program " + program + " or the log directory " + inputs_.log_place;
  opening_.emplace(executor_, inputs_.logger, what, TimePoint::max());
  const std::string script = substitute(inputs_.config.workers.script, {{"local_rank", "0"}});
  inputs_.disk.post(
      [files, open = inputs_.open_output, name = program, script,
       path = value_or(inputs_.environment, "PATH", "")] {
        auto found = find_program(name, path);
        const auto there = find_script(script);
        if (found && !there) found = there.error();
        files->emplace(Files{std::move(found), open()});
      },
      [self = shared_from_this(), files] { self->on_files(std::move(**files)); });
  evidence_.begin();
}

void RoundRunner::on_files(Files files) {
  // Also of files that were given up meanwhile: this one is opened once for all rounds.
  if (files.output && files.output->events) record_into(*files.output);
  if (!opening_) return;  // given up
  opening_.reset();
  Result<void> logs;
  Result<void> program;
  if (!files.output) {
    logs = files.output.error();
  } else {
    output_.emplace(std::move(*files.output));
    watch_->keep_in(output_->logs);
    if (!output_->foreign_directory.empty()) output_->warn(output_->foreign_directory);
    if (!output_->no_files.empty()) {
      output_->warn(output_->no_files + "; this round continues without log files");
    }
    for (const LocalRank rank : local_ranks()) plan_one(rank);
    if (files.program && inputs_.hooks.opened) inputs_.hooks.opened();  // the line of the start
    if (files.program) say_where_hidden_output_is();
  }
  if (!files.program) {
    program = files.program.error();
  } else {
    program_ = *files.program;
  }
  if (inputs_.warm && logs && program) return ask_warm_workers();
  feed(local::FilesOpened{logs, program});
}

void RoundRunner::record_into(OutputContext& output) {
  Result<std::shared_ptr<LogFile>>& events = *output.events;
  if (!events) return output.warn(events.error().sentence + "; the run continues without it");
  inputs_.events.write_to(std::move(*events));
}

void RoundRunner::plan_one(LocalRank rank) {
  Worker& planned = worker(rank);
  const bool runs = planned.child.has_value();
  if (!runs) planned.error_file = output_->logs.error_file(rank);
  planned.plan =
      plan_worker(inputs_.config, inputs_.environment, inputs_.facts, rank, planned.error_file);
  auto output = plan_output(inputs_.config, *output_, rank, planned.plan.rank);
  if (runs) {
    planned.output_plan.out.route = planned.output->set_rank(output);
    return;
  }
  planned.mark = worker_mark(inputs_.facts, rank);
  planned.output_plan = std::move(output);
}

// Of the first round of a node none are.
void RoundRunner::act(const local::AwaitDevices&) {
  if (!inputs_.devices.may_be_held()) return feed(local::DevicesReleased{});
  asio::co_spawn(executor_, wait_for_devices(shared_from_this()), net::rethrow_bug);
}

asio::awaitable<void> RoundRunner::wait_for_devices(std::shared_ptr<RoundRunner> self) {
  std::function<bool()> wanted = [&round = self->round_] { return round->is_opening(); };
  co_await self->inputs_.devices.wait_until_released(self->inputs_.facts.round, std::move(wanted));
  self->feed(local::DevicesReleased{});
}

void RoundRunner::act(const local::PostSpawn& action) {
  asio::post(executor_, [self = shared_from_this(), rank = action.rank] {
    self->feed(local::SpawnDue{rank});
  });
}

void RoundRunner::act(const local::StartWorker& action) {
  if (await_room(action.rank)) return;
  auto started = start_worker(action.rank);
  if (started) {
    inputs_.events.record(worker_started_event(inputs_.facts.round, name_of(action.rank)));
  }
  answer(local::Started{action.rank, std::move(started)});
}

Result<void> RoundRunner::start_worker(LocalRank rank) {
  make_place(rank);
  Worker& started = worker(rank);
  auto opened = open_output(started);
  if (!opened) return opened;
  auto warm = inputs_.warm ? inputs_.warm->take(rank.value()) : std::nullopt;
  started.warm = warm.has_value();
  auto child = warm ? Result<Child>(std::move(*warm)) : start_cold(started, rank);
  started.output->start();
  if (!child) return child.error();
  started.child.emplace(std::move(*child));
  started.cpu_before = started.cpu_seen = {Clock::now(), Duration(0)};
  links_.started(rank, started.child->pid());
  inputs_.orphans.except(started.child->pid());
  started.runner = weak_from_this();
  asio::co_spawn(executor_, watch(slot(rank), inputs_.orphans), net::rethrow_bug);
  return {};
}

Result<void> RoundRunner::open_output(Worker& started) {
  if (started.output) return {};
  auto output = WorkerOutput::open(executor_, inputs_.consoles, started.output_plan);
  if (!output) return output.error();
  started.output.emplace(std::move(*output));
  return {};
}

Result<Child> spawn_planned(const asio::any_io_executor& executor, const std::string& program,
                            const RoundWorker& worker, SpawnRequest request) {
  request.program = program;
  request.argv = worker.plan.argv;
  request.environment = to_block(worker.plan.environment);
  request.stdout_fd = worker.output->descriptor(Stream::kStdout);
  request.stderr_fd = worker.output->descriptor(Stream::kStderr);
  auto child = spawn(executor, request);
  if (!child && request.leaf) request.leaf->remove();
  return child;
}

Result<Child> RoundRunner::start_cold(const Worker& started, LocalRank rank) {
  SpawnRequest request;
  request.descriptor_limit = inputs_.descriptor_limit;
  request.leaf = make_leaf(rank);
  const auto& bound = inputs_.config.workers.cpus;
  if (!bound.empty()) request.cpus = bound.at(static_cast<std::size_t>(rank.value()));
  return spawn_planned(executor_, program_, started, std::move(request));
}

std::optional<Cgroup> RoundRunner::make_leaf(LocalRank rank) const {
  if (!inputs_.cgroup) return std::nullopt;
  return inputs_.cgroup->make("round" + std::to_string(inputs_.facts.round.value()) + ".local" +
                              std::to_string(rank.value()));
}

// Before the first worker starts; the wait has a deadline, or with --warm=first, the imports.
void RoundRunner::ask_warm_workers() {
  asked_warm_ = true;
  std::vector<warm::Wanted> wanted;
  for (const auto& worker : workers_) {
    if (worker->child) {  // it was taken over
      wanted.push_back({});
      continue;
    }
    if (!open_output(*worker)) break;  // start_worker() tries again, and says why
    const int out = worker->output->descriptor(Stream::kStdout);
    const int err = worker->output->descriptor(Stream::kStderr);
    const auto inherited = warm::read_inherited(program_, out, err);
    const WorkerPlan& plan = worker->plan;
    wanted.push_back({{program_, plan.argv, plan.environment, inherited}, out, err});
  }
  const auto first = std::find_if(wanted.begin(), wanted.end(), [](const warm::Wanted& one) {
    return !one.start.program.empty();
  });
  if (first != wanted.end()) warm_start_ = first->start;
  inputs_.warm->ask(std::move(wanted), [self = shared_from_this()] {
    if (!std::exchange(self->asked_warm_, false)) return;  // given up meanwhile
    self->feed(local::FilesOpened{});
  });
}

void RoundRunner::act(const local::GiveUpFiles&) {
  opening_.reset();
  if (std::exchange(asked_warm_, false)) inputs_.warm->release();
}

std::vector<Rank> RoundRunner::started_ranks(bool warm_only) const {
  std::vector<Rank> ranks;
  for (const LocalRank rank : local_ranks()) {
    const auto& record = round_->group().worker(rank);
    const bool kept = record.carried != WorkerRecord::Carried::kNo;
    if (!kept && (worker(rank).warm || !warm_only)) ranks.push_back(worker(rank).plan.rank);
  }
  return ranks;
}

// The first round has nothing to say: with --warm=first a refusal was noted.
void RoundRunner::tell_warm_starts() {
  const std::vector<Rank> started = started_ranks(false);
  const std::vector<Rank> warm = started_ranks(true);
  if (started.empty() || (warm.empty() && inputs_.facts.restarts.value() == 0)) return;
  const bool by_name = started.size() < workers_.size() || started.size() == 1;
  const auto all = static_cast<long long>(started.size());
  const std::string all_ranks = by_name ? ranks_text(started) : "all " + count_text(all, "rank");
  const bool some_cold = warm.size() < started.size();
  const std::string which = some_cold ? ranks_text(warm) : all_ranks;
  const std::string why = printable(inputs_.warm->why_cold());
  const std::string text = warm.empty() ? all_ranks + " of this node started cold: " + why
                                        : which + " of this node started from the template";
  inputs_.logger.info(note_line("WARM", text + (warm.empty() || !some_cold ? "" : "; " + why)));
}

// The template is for restarts, as long as there can be one.
void RoundRunner::prepare_warm_restart() {
  const LaunchConfig& config = inputs_.config;
  if (!config.rendezvous && inputs_.facts.restarts.value() >= config.stopping.max_restarts) {
    return inputs_.warm->retire();
  }
  const LocalRank first(0);
  const auto is_early = [self = weak_from_this(), first] {
    const auto round = self.lock();
    return round && round->links_.has_no_step_yet(first);
  };
  inputs_.warm->round_runs(warm_start_, {worker(first).child->pid(), is_early});
}

}  // namespace ddprun
