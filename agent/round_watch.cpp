#include "agent/round_watch.hpp"

#include <spdlog/logger.h>

#include <boost/asio/co_spawn.hpp>
#include <utility>

#include "agent/core/text.hpp"
#include "agent/proc/stacks.hpp"
#include "base/message_line.hpp"

namespace ddprun {

namespace asio = boost::asio;

namespace {

void rethrow_failure(const std::exception_ptr& bug) {
  if (bug) std::rethrow_exception(bug);
}

}  // namespace

RoundWatch::RoundWatch(asio::any_io_executor executor, Inputs inputs)
    : executor_(executor), inputs_(std::move(inputs)), timer_(executor) {}

void RoundWatch::update(const WorkerGroup& group) {
  finished_.clear();
  running_.clear();
  for (const LocalRank rank : group.running()) running_.push_back(inputs_.name_of(rank));
  const bool healthy = group.state() == GroupState::kHealthy;
  for (const LocalRank rank : healthy ? group.succeeded() : std::vector<LocalRank>()) {
    finished_.push_back(inputs_.name_of(rank).rank);
  }
  const auto finished = static_cast<int>(finished_.size());
  early_finish_.update(finished, static_cast<int>(running_.size()), Clock::now());
  arm();
}

void RoundWatch::arm() {
  const std::optional<TimePoint> next = early_finish_.next();
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
  say_partial(early_finish_.take(Clock::now()));
  arm();
}

PartialFacts RoundWatch::partial_facts() const {
  const TimePoint now = Clock::now();
  return {finished_, running_, early_finish_.lasts(now), early_finish_.left(now)};
}

void RoundWatch::say_partial(EarlyFinish::Due due) {
  if (due == EarlyFinish::Due::kFirstNote) {
    inputs_.logger.info(first_partial_line(partial_facts()));
  } else if (due == EarlyFinish::Due::kSecondNote) {
    asio::co_spawn(executor_, say_what_others_do(shared_from_this()), rethrow_failure);
  }
}

// From /proc alone: no process is stopped for a note.
asio::awaitable<void> RoundWatch::say_what_others_do(std::shared_ptr<RoundWatch> self) {
  const PartialFacts facts = self->partial_facts();
  const TimePoint deadline = Clock::now() + kStacksMax;
  const StackTools none;
  const StackDump dump = co_await dump_stacks(self->executor_, self->inputs_.disk,
                                              self->inputs_.orphans, none, facts.running, deadline);
  self->inputs_.logger.warn(second_partial_line(facts, group_stacks(dump)));
}

asio::awaitable<SavedStacks> RoundWatch::dump(std::shared_ptr<RoundWatch> self, std::string why) {
  using std::chrono::milliseconds;
  const TimePoint now = Clock::now();
  const auto wall = std::chrono::time_point_cast<milliseconds>(std::chrono::system_clock::now());
  const auto after = std::chrono::duration_cast<milliseconds>(now - self->inputs_.run_started);
  const StackTools tools = find_stack_tools(self->inputs_.environment);
  SavedStacks saved;
  const TimePoint deadline = now + kStacksMax;
  saved.dump = co_await dump_stacks(self->executor_, self->inputs_.disk, self->inputs_.orphans,
                                    tools, self->running_, deadline);
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
        } else if (write_all(file->descriptor(), text) != 0) {
          *failure = "cannot write all of " + path;
        }
      },
      [self = shared_from_this(), failure] {
        if (!failure->empty()) self->inputs_.logger.warn(warning_line("LOG", *failure));
      },
      DiskThread::Kind::kWrite);
}

}  // namespace ddprun
