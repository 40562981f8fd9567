// The signals that a round sends to its workers, and what they do to them.
#include <signal.h>
#include <spdlog/logger.h>

#include <algorithm>
#include <chrono>

#include "agent/config/received_signal.hpp"
#include "agent/events/run_events.hpp"
#include "agent/proc/process_facts.hpp"
#include "agent/report/lines.hpp"
#include "agent/workers/round.hpp"

namespace ddprun {

void RoundRunner::act(const Signal& action) {
  note_obedience(action.rank, action.signal);
  if (action.spares_pipe_ends) return kill_but_pipe_ends(action.rank);
  signal_group(action.rank, action.signal);
}

// After a failure: its exit may be the answer to the signal.
void RoundRunner::note_obedience(LocalRank rank, int signal) {
  Worker& target = worker(rank);
  const bool counts = round_->group().first_failure() && !round_->has_exited(rank);
  if (!counts || target.may_obey) return;
  target.may_obey = may_handle(target.child->pid(), signal);
}

// While it lives, only SIGKILL reaches what has left its process group: a data loader ends when its
// worker does. What is stopped (SIGSTOP, Ctrl-Z) acts on no other signal before it is continued.
void RoundRunner::signal_group(LocalRank rank, int signal) {
  Worker& target = worker(rank);
  if (target.descendants) return target.descendants->signal(signal);
  const auto& leaf = target.child->leaf();
  if (leaf && target.last_signal == 0) {
    const auto members = leaf->members();
    target.descendants_at_stop =
        static_cast<int>(std::count_if(members.begin(), members.end(), [&](pid_t member) {
          return member != target.child->pid();
        }));
  }
  target.last_signal = signal;
  if (signal == SIGKILL && leaf) leaf->kill();
  target.child->signal_group(signal);
}

// Its group gets it a moment later: see StopStage::kSwept.
void RoundRunner::kill_but_pipe_ends(LocalRank rank) {
  Worker& target = worker(rank);
  target.spares_pipe_ends = true;
  if (target.descendants) return target.descendants->kill_but_pipe_ends();
  ::kill(target.child->pid(), SIGKILL);
}

int RoundRunner::descendants_ended(LocalRank rank) const {
  const Worker& target = worker(rank);
  const int signalled = target.descendants ? target.descendants->signalled() : 0;
  return std::max(signalled, target.descendants_at_stop);
}

RoundRunner::Answer RoundRunner::answer_to(LocalRank rank, int signal) const {
  const pid_t process = worker(rank).child->pid();
  if (!ends_by_default(signal) || ddprun::handles(process, signal)) return Answer::kTakes;
  return ignores(process, signal) ? Answer::kIgnores : Answer::kEnds;
}

RoundRunner::PassedOn RoundRunner::pass_on(int signal, bool force) {
  PassedOn passed;
  for (const LocalRank rank : round_->living()) {
    Worker& target = worker(rank);
    const Answer answer = force ? Answer::kTakes : answer_to(rank, signal);
    if (answer == Answer::kEnds) passed.ends.push_back(target.plan.rank);
    if (answer != Answer::kTakes) continue;
    target.passed.add(signal);
    ::kill(target.child->pid(), signal);  // alone: its data loaders rarely expect a signal
    ++passed.ranks;
  }
  return passed;
}

std::vector<Rank> RoundRunner::ended_by(int signal) const {
  std::vector<Rank> ranks;
  for (const LocalRank rank : round_->living()) {
    if (answer_to(rank, signal) == Answer::kEnds) ranks.push_back(worker(rank).plan.rank);
  }
  return ranks;
}

void RoundRunner::act(const local::SignalsBegin& action) {
  if (inputs_.warm) inputs_.warm->look();
  const char* name = action.signal == SIGKILL ? "kill_began" : "stop_began";
  inputs_.events.record(stop_event(inputs_.facts.round, name, action.signal, action.workers));
}

void RoundRunner::begin_countdown(TimePoint deadline) {
  count_down(deadline);
  if (!inputs_.consoles.waits) return;
  inputs_.consoles.waits->begin(WaitLine::Of::kStop, [this, deadline] {
    return StopWait{static_cast<int>(running_ranks().size()), static_cast<int>(workers_.size()),
                    deadline};
  });
}

void RoundRunner::count_down(TimePoint deadline) {
  countdown_timer_.expires_after(kCountdownInterval);
  countdown_timer_.async_wait([self = weak_from_this(), deadline](const auto& why) {
    const auto runner = why ? nullptr : self.lock();
    if (!runner) return;
    const auto left = std::chrono::round<std::chrono::seconds>(deadline - Clock::now());
    const std::vector<Rank> running = runner->running_ranks();
    if (left <= Duration::zero() || running.empty()) return;
    runner->inputs_.logger.info(countdown_line(left, running));
    runner->count_down(deadline);
  });
}

void RoundRunner::end_countdown() {
  countdown_timer_.cancel();
  if (inputs_.consoles.waits) inputs_.consoles.waits->end(WaitLine::Of::kStop);
}

}  // namespace ddprun
