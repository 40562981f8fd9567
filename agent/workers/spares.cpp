#include "agent/workers/spares.hpp"

#include <signal.h>
#include <spdlog/logger.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "agent/events/run_events.hpp"
#include "agent/proc/process_table.hpp"
#include "agent/proc/program.hpp"
#include "agent/watch/watch_lines.hpp"
#include "agent/workers/round.hpp"
#include "base/limits.hpp"
#include "base/message_line.hpp"
#include "net/bugs.hpp"

namespace ddprun {

namespace asio = boost::asio;

Spares::Spares(const asio::any_io_executor& executor, SpareInputs inputs)
    : executor_(executor),
      inputs_(std::move(inputs)),
      due_(executor),
      ended_(executor, TimePoint::max()) {}

void Spares::round_runs() {
  pool_.want(inputs_.config.stopping.spares, SparePool::Pace::kOneByOne);
  for (const int spare : pool_.surplus()) kill(spare);
  start_if_due();
}

void Spares::node_waits() {
  pool_.want(inputs_.config.workers.count, SparePool::Pace::kAtOnce);
  start_if_due();
}

void Spares::pause() {
  pool_.pause();
  due_.cancel();
}

void Spares::start_if_due() {
  while (const auto spare = over_ ? std::nullopt : pool_.start(Clock::now())) open_files(*spare);
  due_.cancel();
  const auto due = over_ ? std::nullopt : pool_.due();
  if (!due) return;
  due_.expires_at(*due);
  due_.async_wait([self = weak_from_this()](const boost::system::error_code& why) {
    const auto spares = self.lock();
    if (!why && spares) spares->start_if_due();
  });
}

void Spares::open_files(int spare) {
  const auto files = std::make_shared<std::optional<Files>>();
  inputs_.disk.post(
      [files, spare, config = inputs_.config, logs = inputs_.logs, disk = inputs_.disk,
       path = value_or(inputs_.environment, "PATH", "")] {
        files->emplace(Files{find_program(config.workers.command.front(), path),
                             open_spare_output(config, *logs, spare, disk)});
      },
      [self = shared_from_this(), files, spare] { self->on_files(spare, **files); });
}

void Spares::on_files(int spare, const Files& files) {
  if (over_) return;
  if (!files.output.no_files.empty()) {
    inputs_.logger.warn(
        warning_line("LOG", files.output.no_files + "; this spare continues without log files"));
  }
  if (!files.program) return give_up(spare, files.program.error().sentence);
  const auto started = spawn_spare(spare, *files.program, files.output);
  if (!started) give_up(spare, started.error().sentence);
}

void Spares::give_up(int spare, const std::string& why) {
  inputs_.logger.warn(spare_not_started_line(why));
  static_cast<void>(pool_.ended(spare, Clock::now()));
}

Result<void> Spares::spawn_spare(int spare, const std::string& program, SpareOutput output) {
  const LaunchConfig& config = inputs_.config;
  RoundFacts facts;
  facts.nonce = inputs_.nonce;
  facts.worker_socket = inputs_.links->open(executor_, inputs_.nonce, config, inputs_.logger);
  facts.timer_pipe = inputs_.links->timer_pipe();
  const auto worker = std::make_shared<RoundWorker>();
  worker->plan = plan_spare(config, inputs_.environment, facts, spare, output.error_file);
  worker->error_file = output.error_file;
  worker->mark = spare_mark(inputs_.nonce, spare);
  worker->output_plan = std::move(output.plan);
  worker->output_plan.bytes = inputs_.output_bytes;
  worker->output_plan.warn = [this](const std::string& sentence) {
    inputs_.logger.warn(warning_line("LOG", sentence));
  };
  auto opened = WorkerOutput::open(executor_, inputs_.consoles, worker->output_plan);
  if (!opened) return opened.error();
  worker->output.emplace(std::move(*opened));
  SpawnRequest request;
  request.descriptor_limit = inputs_.descriptor_limit;
  if (inputs_.cgroup) request.leaf = inputs_.cgroup->make("spare" + std::to_string(spare));
  auto child = spawn_planned(executor_, program, *worker, std::move(request));
  worker->output->start();
  if (!child) return child.error();
  worker->child.emplace(std::move(*child));
  worker->cpu_before = worker->cpu_seen = {Clock::now(), Duration(0)};
  const int pid = worker->child->pid();
  inputs_.orphans.except_standing(pid);
  const auto link = inputs_.links->add(pid, worker->mark, {this, LocalRank(spare)});
  worker->ended_apart = [self = weak_from_this(), spare](const ExitStatus& status) {
    if (const auto spares = self.lock()) spares->ended(spare, status);
  };
  spares_.insert_or_assign(spare, Spare{worker, link});
  ++processes_;
  asio::co_spawn(executor_, RoundRunner::watch(worker, inputs_.orphans), net::rethrow_bug);
  return {};
}

void Spares::hear(LocalRank spare, const worker_link::Report& report) {
  if (!std::holds_alternative<worker_link::Survives>(report)) return;
  const auto found = spares_.find(spare.value());
  if (found == spares_.end() || pool_.is_waiting(spare.value())) return;
  pool_.waits(spare.value());
  inputs_.events.record(
      spare_event("spare_ready", spare.value(), found->second.worker->child->pid()));
  start_if_due();
}

void Spares::fill(CarriedWorkers& carried) {
  if (carried.since == TimePoint()) carried.since = Clock::now();
  for (int i = 0; !over_ && i < inputs_.config.workers.count; ++i) {
    const LocalRank rank(i);
    const bool has_one = std::any_of(carried.all.begin(), carried.all.end(),
                                     [rank](const CarriedWorker& one) { return one.rank == rank; });
    if (has_one) continue;
    const auto number = pool_.take();
    if (!number) return;
    const Spare taken = std::exchange(spares_.at(*number), {});
    spares_.erase(*number);
    --processes_;
    taken.worker->ended_apart = nullptr;
    inputs_.orphans.except(taken.worker->child->pid());
    inputs_.links->move(taken.link, {});
    carried.all.push_back({rank, taken.worker, taken.link, *number});
  }
}

void Spares::say_if_none() {
  if (!inputs_.links->is_open()) return;  // it has said so
  if (pool_.had_any() || std::exchange(said_none_, true)) return;
  inputs_.logger.info(no_spare_line());
}

// Before any round took it over.
void Spares::ended(int spare, const ExitStatus& status) {
  const Spare gone = std::exchange(spares_.at(spare), {});
  spares_.erase(spare);
  const int pid = gone.worker->child->pid();
  inputs_.links->remove(gone.link);
  inputs_.events.record(spare_event("spare_ended", spare, pid));
  const auto when = pool_.ended(spare, Clock::now());
  using Ended = SparePool::Ended;
  if (!over_ && when == Ended::kBeforeItWaited) {
    inputs_.logger.warn(unready_spare_line(spare, pid, status));
  } else if (!over_ && when == Ended::kWhileItWaited) {
    inputs_.logger.info(lost_spare_line(spare, pid, status));
  }
  asio::co_spawn(executor_, bury(shared_from_this(), gone.worker), net::rethrow_bug);
  start_if_due();
}

// With what it had started.
asio::awaitable<void> Spares::bury(std::shared_ptr<Spares> self,
                                   std::shared_ptr<RoundWorker> worker) {
  co_await ddprun::bury(self->executor_, self->inputs_.orphans, std::move(worker));
  if (--self->processes_ == 0) self->ended_.cancel();
}

void Spares::kill(int spare) {
  const auto found = spares_.find(spare);
  if (found != spares_.end()) kill_all_of(*found->second.worker);
}

void Spares::pause_groups(bool on) {
  for (const auto& [number, spare] : spares_) spare.worker->child->pause_group(on);
}

void Spares::stop() {
  if (std::exchange(over_, true)) return;
  pool_.close();
  due_.cancel();
  for (const auto& [number, spare] : spares_) kill_all_of(*spare.worker);
}

asio::awaitable<void> Spares::end() {
  stop();
  if (processes_ == 0) co_return;
  ended_.expires_after(kWaitAfterKill);
  boost::system::error_code cancelled;
  co_await ended_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
}

std::vector<control::SpareStatus> Spares::status() const {
  std::vector<control::SpareStatus> all;
  for (const auto& [number, spare] : spares_) {
    const int pid = spare.worker->child->pid();
    const auto process = find_process(pid);
    all.push_back({number, pid, process ? process->state : '\0', pool_.is_waiting(number)});
  }
  return all;
}

std::vector<std::string> Spares::marks() const {
  std::vector<std::string> all;
  for (const auto& [number, spare] : spares_) all.push_back(spare.worker->mark);
  return all;
}

}  // namespace ddprun
