// How a round begins where workers may start from a template (--warm).
#include <spdlog/logger.h>

#include <algorithm>
#include <utility>

#include "agent/warm/inherited.hpp"
#include "agent/watch/watch_lines.hpp"
#include "agent/workers/round.hpp"
#include "base/count_text.hpp"
#include "base/duration_text.hpp"
#include "base/message_line.hpp"
#include "base/printable.hpp"

namespace ddprun {

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
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    const auto& record = round_.group().worker(LocalRank(static_cast<int>(i)));
    const bool kept = record.carried != WorkerRecord::Carried::kNo;
    if (!kept && (workers_[i]->warm || !warm_only)) ranks.push_back(workers_[i]->plan.rank);
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
