#include "agent/workers/round_watch.hpp"

#include <signal.h>
#include <spdlog/logger.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <utility>

#include "agent/proc/process_facts.hpp"
#include "agent/proc/process_table.hpp"
#include "agent/proc/progress.hpp"
#include "agent/proc/stacks.hpp"
#include "agent/report/lines.hpp"
#include "agent/workers/round.hpp"
#include "base/descriptor.hpp"
#include "base/exit_status.hpp"
#include "base/format.hpp"
#include "base/message_line.hpp"
#include "net/bugs.hpp"

namespace ddprun {

namespace asio = boost::asio;

RoundWatch::RoundWatch(asio::any_io_executor executor, Inputs inputs)
    : executor_(executor),
      inputs_(std::move(inputs)),
      early_finish_(inputs_.limits.finish_timeout),
      timer_(executor) {}

void RoundWatch::update(const WorkerGroup& group) {
  const bool healthy = group.state() == GroupState::kHealthy;
  const bool was_healthy = std::exchange(healthy_, healthy);
  if (!healthy && !was_healthy) return;  // one spawn of many
  const std::size_t finished = healthy ? group.succeeded().size() : 0;
  const std::size_t running = healthy ? group.running().size() : 0;
  early_finish_.update(static_cast<int>(finished), static_cast<int>(running), Clock::now());
  if (!healthy) {
    hang_.reset();
    sleep_.reset();
    input_.reset();
  } else if (!was_healthy) {
    const StopConfig& limits = inputs_.limits;
    if (limits.hang_timeout) hang_.emplace(*limits.hang_timeout).begin(Clock::now());
    if (limits.sleep_timeout) sleep_.emplace(*limits.sleep_timeout).begin(Clock::now());
    if (inputs_.asks_for_input) input_.emplace().begin(Clock::now());
  }
  arm();
}

void RoundWatch::arm() {
  std::optional<TimePoint> next = early_finish_.next();
  if (hang_ && !samples_) next = std::min(hang_->next(), next.value_or(TimePoint::max()));
  if (sleep_) next = std::min(sleep_->next(), next.value_or(TimePoint::max()));
  if (input_ && !looks_for_input_) next = std::min(input_->next(), next.value_or(TimePoint::max()));
  if (gives_up_) next.reset();
  if (next == armed_) return;
  armed_ = next;
  timer_.cancel();
  if (!next) return;
  timer_.expires_at(*next);
  timer_.async_wait([self = shared_from_this()](const boost::system::error_code& why) {
    if (!why) self->on_timer();
  });
}

void RoundWatch::on_timer() {
  armed_.reset();
  const TimePoint now = Clock::now();
  say_partial(early_finish_.take(now));
  if (hang_ && !samples_ && now >= hang_->next()) {
    begin_sample();
  }
  if (sleep_ && !gives_up_ && now >= sleep_->next()) look_at_states(now);
  if (input_ && !looks_for_input_ && now >= input_->next()) begin_look_for_input(now);
  arm();
}

void RoundWatch::begin_look_for_input(TimePoint now) {
  const WatchedRanks watched = ranks();
  std::vector<InputRank> ranks;
  for (std::size_t at = 0; at < watched.running.size(); ++at) {
    ranks.push_back({watched.running[at].local_rank, watched.written.at(at)});
  }
  std::vector<InputWatch::Look> looks = input_->due(ranks, now);
  if (looks.empty()) return;
  std::vector<pid_t> leaders;
  for (const InputWatch::Look& look : looks) {
    for (const WorkerName& worker : watched.running) {
      if (worker.local_rank == look.rank) leaders.push_back(worker.pid);
    }
  }
  looks_for_input_ = true;
  auto look = look_for_input(shared_from_this(), std::move(looks), std::move(leaders));
  asio::co_spawn(executor_, std::move(look), net::rethrow_bug);
}

asio::awaitable<void> RoundWatch::look_for_input(std::shared_ptr<RoundWatch> self,
                                                 std::vector<InputWatch::Look> looks,
                                                 std::vector<pid_t> leaders) {
  std::function<std::vector<bool>()> read = [looks, leaders] {
    std::vector<bool> waits;
    for (std::size_t at = 0; at < looks.size(); ++at) {
      const Threads which = looks[at].closely ? Threads::kAll : Threads::kMain;
      waits.push_back(rank_waits_for_terminal(leaders.at(at), which));
    }
    return waits;
  };
  const TimePoint deadline = Clock::now() + kStacksMax;
  auto waits = co_await run_on<std::vector<bool>>(self->inputs_.disk, std::move(read), deadline);
  self->looks_for_input_ = false;
  if (self->input_ && waits) {
    const InputWatch::News news = self->input_->found(looks, *waits, Clock::now());
    if (const auto round = self->round_.lock()) round->tell_input(news);
  }
  self->arm();
}

// Not on the thread for files: what stalls a worker may stall that, too.
void RoundWatch::look_at_states(TimePoint now) {
  std::vector<WorkerState> states;
  for (const WorkerName& worker : ranks().running) {
    states.push_back({worker, read_state(worker.pid).state});
  }
  std::vector<Sleeper> sleepers = sleep_->look(states, now);
  if (sleepers.empty()) return;
  gives_up_ = true;
  for (Sleeper& each : sleepers) each.wait_channel = read_state(each.worker.pid).wait_channel;
  asio::co_spawn(executor_, end_sleep(shared_from_this(), std::move(sleepers)), net::rethrow_bug);
}

void RoundWatch::look_again(int echo) {
  echo_ = echo;
  if (hang_ && !samples_) begin_sample();
}

void RoundWatch::begin_sample() {
  samples_ = true;
  auto read = sample(shared_from_this(), std::exchange(echo_, std::nullopt));
  asio::co_spawn(executor_, std::move(read), net::rethrow_bug);
}

asio::awaitable<void> RoundWatch::sample(std::shared_ptr<RoundWatch> self,
                                         std::optional<int> echo) {
  std::vector<pid_t> leaders;
  const WatchedRanks watched = self->ranks();
  for (const WorkerName& worker : watched.running) leaders.push_back(worker.pid);
  const bool closely = self->hang_ && self->hang_->is_quiet();
  std::function<std::vector<RankProgress>()> read = [leaders, closely,
                                                     port = self->inputs_.store_port] {
    return closely ? read_progress_closely(leaders, port) : read_progress(leaders);
  };
  const TimePoint deadline = Clock::now() + kStacksMax;
  auto progress =
      co_await run_on<std::vector<RankProgress>>(self->inputs_.disk, std::move(read), deadline);
  self->samples_ = false;
  for (std::size_t i = 0; progress && i < progress->size(); ++i) {
    (*progress)[i].step = watched.steps.at(i);
    (*progress)[i].held = watched.held.at(i);
  }
  self->sampled(progress ? &*progress : nullptr, echo);
}

void RoundWatch::sampled(const std::vector<RankProgress>* ranks, std::optional<int> echo) {
  if (!hang_ || gives_up_) return;
  const TimePoint now = Clock::now();
  Duration lasts{0};
  if (ranks == nullptr) {
    hang_->begin(now);  // the disk stalls: nothing is known of the ranks
  } else {
    lasts = echo ? hang_->look(*ranks, now) : hang_->sample(*ranks, now);
  }
  const bool quiet = lasts >= hang_->limit();
  const bool news = std::exchange(told_quiet_, quiet) != quiet;
  const auto round = round_.lock();
  if (round && (quiet || news || echo)) round->tell_quiet(lasts, echo);
  if (echo_) begin_sample();
  arm();
}

void RoundWatch::give_up_hang() {
  if (!hang_) return;
  const Duration limit = hang_->limit();
  end_round(kExitHang, "no progress for " + duration_text(limit),
            [limit, runner = round_](const StackDump& dump) {
              const auto round = runner.lock();
              return hang_finding(limit, dump,
                                  round ? round->exceptions() : std::vector<RankException>());
            });
}

void RoundWatch::end_round(int exit_code, std::string reason, FindingOf finding_of) {
  if (std::exchange(gives_up_, true)) return;
  asio::co_spawn(
      executor_,
      end_after_dump(shared_from_this(), exit_code, std::move(reason), std::move(finding_of)),
      net::rethrow_bug);
}

asio::awaitable<void> RoundWatch::end_after_dump(std::shared_ptr<RoundWatch> self, int exit_code,
                                                 std::string reason, FindingOf finding_of) {
  const SavedStacks stacks = co_await dump(self, std::move(reason));
  self->give_up(exit_code, finding_of(stacks.dump), stacks);
}

asio::awaitable<void> RoundWatch::end_sleep(std::shared_ptr<RoundWatch> self,
                                            std::vector<Sleeper> sleepers) {
  const SavedStacks stacks = co_await dump(self, "a rank is in uninterruptible sleep");
  const GiveUp order{sleepers.front().worker.local_rank, kExitSleep,
                     sleep_finding(sleepers, stacks.dump), stacks.file};
  if (const auto round = self->round_.lock()) round->give_up(order);
}

void RoundWatch::end_section(const WorkerName& worker, const SectionFacts& section) {
  end_round(
      kExitHang,
      "a section of rank " + std::to_string(worker.rank.value()) + " has exceeded its time",
      [worker, section](const StackDump& dump) { return section_finding(worker, section, dump); });
  arm();
}

void RoundWatch::end_timer(const WorkerName& worker, const WorkerTimer& timer) {
  if (!healthy_ || std::exchange(gives_up_, true)) return;
  arm();
  asio::co_spawn(executor_, end_at_timer(shared_from_this(), worker, timer), net::rethrow_bug);
}

// The signal comes last: a process that is gone has no stack, and its end would be the failure.
asio::awaitable<void> RoundWatch::end_at_timer(std::shared_ptr<RoundWatch> self, WorkerName worker,
                                               WorkerTimer timer) {
  const std::string why = "a timer of rank " + std::to_string(worker.rank.value()) + " has expired";
  const SavedStacks stacks = co_await dump(self, why);
  if (!self->healthy_) co_return;
  self->give_up(exit_code_of_signal(timer.signal), timer_finding(worker, timer, stacks.dump),
                stacks);
  const auto process = find_process(timer.pid);
  const bool is_it = process && process->started == timer.process_started;
  if (is_it) ::kill(timer.pid, timer.signal);
}

void RoundWatch::give_up(int exit_code, Finding why, const SavedStacks& stacks) {
  keep(stacks.dump);
  const WatchedRanks watched = ranks();
  add_steps(why, watched.running, watched.steps);
  GiveUp order{LocalRank(0), exit_code, std::move(why), stacks.file};
  for (const RankStacks& rank : stacks.dump.ranks) {
    const auto& odd = order.why.ranks;
    const bool first = odd.empty() || odd.front() == rank.worker.rank.value();
    if (!first) continue;
    order.rank = rank.worker.local_rank;
    break;
  }
  if (const auto round = round_.lock()) round->give_up(order);
}

void RoundWatch::keep(const StackDump& dump) {
  for (const RankStacks& rank : dump.ranks) {
    const bool known = std::any_of(rank.processes.begin(), rank.processes.end(),
                                   [](const auto& process) { return !process.python.empty(); });
    if (known) python_known_.push_back(rank.worker.pid);
  }
}

bool RoundWatch::has_python_of(pid_t worker) const {
  return std::find(python_known_.begin(), python_known_.end(), worker) != python_known_.end();
}

WatchedRanks RoundWatch::ranks() const {
  const auto round = round_.lock();
  return round ? round->watched_ranks() : WatchedRanks();
}

PartialFacts RoundWatch::partial_facts() const {
  const TimePoint now = Clock::now();
  WatchedRanks watched = ranks();
  return {std::move(watched.finished), std::move(watched.running), early_finish_.lasts(now),
          early_finish_.left(now)};
}

void RoundWatch::say_partial(EarlyFinish::Due due) {
  if (due == EarlyFinish::Due::kFirstNote) {
    inputs_.logger.info(first_partial_line(partial_facts()));
  } else if (due == EarlyFinish::Due::kGiveUp) {
    end_round(kExitFinishTimeout, "ranks are still running at --finish-timeout",
              [facts = partial_facts()](const StackDump& dump) {
                return finish_timeout_finding(facts, dump);
              });
  } else if (due == EarlyFinish::Due::kSecondNote) {
    asio::co_spawn(executor_, say_what_others_do(shared_from_this()), net::rethrow_bug);
  }
}

// From /proc alone: no process is stopped for a note.
asio::awaitable<void> RoundWatch::say_what_others_do(std::shared_ptr<RoundWatch> self) {
  const PartialFacts facts = self->partial_facts();
  const TimePoint deadline = Clock::now() + kStacksMax;
  const StackTools none;
  const StackDump dump = co_await dump_stacks(self->executor_, self->inputs_.disk,
                                              self->inputs_.orphans, none, facts.running, deadline);
  if (self->over_) co_return;
  self->inputs_.logger.warn(second_partial_line(facts, group_stacks(dump)));
}

asio::awaitable<SavedStacks> RoundWatch::dump(std::shared_ptr<RoundWatch> self, std::string why) {
  using std::chrono::milliseconds;
  const TimePoint now = Clock::now();
  const auto wall = std::chrono::time_point_cast<milliseconds>(std::chrono::system_clock::now());
  const auto after = std::chrono::duration_cast<milliseconds>(now - self->inputs_.run_started);
  // One that reported a time-out has exited, and is heard before the others are stopped.
  std::vector<WorkerName> alive = self->ranks().running;
  std::erase_if(alive, [](const WorkerName& worker) { return ::kill(worker.pid, 0) != 0; });
  const StackTools tools = find_stack_tools(self->inputs_.environment);
  SavedStacks saved;
  const TimePoint deadline = now + kStacksMax;
  saved.dump = co_await dump_stacks(self->executor_, self->inputs_.disk, self->inputs_.orphans,
                                    tools, alive, deadline);
  if (self->over_) co_return saved;  // the log directory may have gone, and the report was told
  saved.file = self->logs_.stacks_file(after);
  if (saved.file.empty() || saved.dump.ranks.empty()) co_return saved;
  const std::string heading = "stacks at " + time_text(wall) + ", round " +
                              std::to_string(self->inputs_.round.value()) + ": " + why;
  self->write(saved.file, dump_text(saved.dump, heading));
  co_return saved;
}

void RoundWatch::write(const std::string& path, std::string text) {
  const auto failure = std::make_shared<std::string>();
  inputs_.disk.post(
      [logs = logs_, disk = inputs_.disk, path, text = std::move(text), failure] {
        const auto file = logs.create(path, disk);
        if (!file) {
          *failure = file.error().sentence;
        } else if (write_all((*file)->descriptor(), text) != 0) {
          *failure = "cannot write all of " + path;
        }
      },
      [self = shared_from_this(), failure] {
        if (!failure->empty() && !self->over_)
          self->inputs_.logger.warn(warning_line("LOG", *failure));
      },
      DiskThread::Kind::kWrite);
}

}  // namespace ddprun
