// What a round says of its ranks on the console, what it shows of their output, and where that is.
#include <spdlog/logger.h>
#include <unistd.h>

#include <filesystem>

#include "agent/config/plan.hpp"
#include "agent/output/tail.hpp"
#include "agent/workers/round.hpp"
#include "base/message_line.hpp"
#include "base/printable.hpp"

namespace ddprun {

// With the first start only: the directories of the others are beside it.
void RoundRunner::say_where_hidden_output_is() {
  if (inputs_.config.log.console != Console::kRank0 || inputs_.facts.restarts.value() != 0) return;
  const LocalRank last(inputs_.config.workers.count - 1);
  const std::string file = output_->logs.stdout_log(last);
  if (file.empty() || worker(last).plan.rank == Rank(0)) return;
  const std::string folder = std::filesystem::path(file).parent_path().parent_path().string();
  const bool stays = inputs_.config.log.asks_for_files();
  inputs_.logger.info(note_line("", "stdout of all ranks but 0 is in " + printable(folder) +
                                        (stays ? "" : ", removed after success without --log-dir") +
                                        "; --console=prefix shows it"));
}

namespace {

struct WrittenFile {
  Rank rank{0};
  std::string path{};
  std::uint64_t before = 0;  // bytes that were written in rounds before
  bool is_known = false;     // what was written passed through here
};

// The first of each rank, which is that of stderr.
std::vector<RankLog> logs_of(const std::vector<WrittenFile>& files) {
  std::vector<RankLog> logs;
  for (const WrittenFile& file : files) {
    if (!logs.empty() && logs.back().rank == file.rank) continue;
    const bool written = file.is_known || size_of_file(file.path) > file.before;
    if (written) logs.push_back({file.rank, file.path});
  }
  return logs;
}

}  // namespace

// A file that is empty shows nothing. Only files that workers write themselves are looked at.
boost::asio::awaitable<std::vector<RankLog>> RoundRunner::written_logs() const {
  std::vector<WrittenFile> files;
  if (!round_->group().first_failure()) co_return std::vector<RankLog>();
  bool are_known = true;
  for (const auto& each : workers_) {
    for (const Stream stream : {Stream::kStderr, Stream::kStdout}) {
      const WorkerOutputPlan& plan = each->output_plan;
      const StreamPlan& its = stream == Stream::kStderr ? plan.err : plan.out;
      const std::string path = log_of(its);
      const bool is_seen = unseen_file(its).empty();
      if (path.empty() || !each->output) continue;
      if (is_seen && each->output->tail(stream).empty()) continue;
      if (is_seen && its.log && its.log->has_lost()) continue;
      files.push_back({each->plan.rank, path, its.before, is_seen});
      are_known = are_known && is_seen;
    }
  }
  if (are_known) co_return logs_of(files);
  std::function<std::vector<RankLog>()> look = [files = std::move(files)] {
    return logs_of(files);
  };
  const TimePoint deadline = Clock::now() + kComplaintMax;
  DiskThread disk = inputs_.disk;
  auto logs = co_await run_on<std::vector<RankLog>>(disk, std::move(look), deadline);
  if (!logs) co_return std::vector<RankLog>();
  co_return std::move(*logs);
}

bool may_ask_for_input(const RoundInputs& inputs) {
  const bool several = inputs.config.workers.count > 1 || inputs.facts.groups > 1;
  return several && ::isatty(STDIN_FILENO) == 1;
}

void RoundRunner::hold_up_for(Duration max) {
  inputs_.consoles.out->hold_workers_up_for(max);
  inputs_.consoles.err->hold_workers_up_for(max);
}

// Where the user sees the prompt of the only one that waits, nothing has to be said.
void RoundRunner::tell_input(const InputWatch::News& news) {
  std::vector<Rank> waiting;
  std::vector<Rank> shown;
  bool unseen = false;
  for (const LocalRank rank : news.over) worker(rank).output->reveal(false);
  for (const LocalRank rank : news.began) {
    const Route route = worker(rank).output_plan.out.route;
    unseen = unseen || (route != Route::kInherit && route != Route::kPass);
    if (worker(rank).output->reveal(true)) shown.push_back(worker(rank).plan.rank);
  }
  for (const LocalRank rank : news.waiting) waiting.push_back(worker(rank).plan.rank);
  const bool say = unseen || (!news.began.empty() && waiting.size() > 1);
  if (say) inputs_.logger.info(note_line("INPUT", input_text(waiting, shown)));
}

void RoundRunner::tell_quiet(Duration lasts, std::optional<int> echo) const {
  const auto floored = std::chrono::floor<protocol::Milliseconds>(lasts);
  inputs_.hooks.tell(client::GroupQuiet{inputs_.facts.round, floored, echo});
}

std::string RoundRunner::placement() const {
  std::vector<Placed> workers;
  for (const auto& planned : workers_) {
    workers.push_back(placed(inputs_.config, planned->plan, log_to_name(planned->output_plan)));
  }
  return placement_table(inputs_.hostname, workers);
}

}  // namespace ddprun
