// Ctrl-Z: the workers of this node and this process stop, and continue together.
#include <signal.h>
#include <spdlog/logger.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <utility>

#include "agent/agent.hpp"
#include "agent/report/lines.hpp"
#include "base/limits.hpp"
#include "net/bugs.hpp"

namespace ddprun {

namespace asio = boost::asio;

// What waits for a place in a round is stopped without a word.
int Agent::stop_workers() {
  int ranks = runner_ == nullptr ? 0 : runner_->pause(true);
  for (const CarriedWorker& held : carried_.all) {
    held.worker->child->pause_group(true);
    ++ranks;
  }
  context_.stop_waiting_workers();
  return ranks;
}

void Agent::continue_workers(Duration stopped) {
  context_.extend_timers(stopped);
  if (runner_ != nullptr) static_cast<void>(runner_->pause(false));
  for (const CarriedWorker& held : carried_.all) held.worker->child->pause_group(false);
  context_.continue_waiting_workers(stopped);
}

void Agent::pause(const ReceivedSignal& received) {
  if (std::exchange(pauses_, true)) return;
  asio::co_spawn(executor_, pause_all(received), net::rethrow_bug);
}

// The note comes first: this process may have to wait for its console, and the front stops when
// this one has. A SIGCONT that comes meanwhile has continued the workers, and is followed by one
// for this process.
asio::awaitable<void> Agent::pause_all(ReceivedSignal received) {
  const auto& rendezvous = context_.config().rendezvous;
  PauseFacts facts;
  facts.ranks = stop_workers();
  // In a run of fixed size they wait for it.
  if (rendezvous && rendezvous->nodes_min < rendezvous->nodes_max) {
    facts.lost_after = rendezvous->keep_alive_interval * rendezvous->keep_alive_max_attempt;
  }
  context_.logger().info(pause_line(received, facts));
  const TimePoint stopped = Clock::now();
  co_await context_.console_is_written(stopped + kPauseNoteMax);
  static_cast<void>(stop_workers());
  ::kill(::getpid(), SIGSTOP);
  pauses_ = false;
  const Duration took = Clock::now() - stopped;
  continue_workers(took);
  context_.logger().info(resume_line(took));
}

}  // namespace ddprun
