// How a run ends: the verdict is known (Stopping), and sent when no worker is left (Over).
#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/exit_status.hpp"
#include "rendezvous/protocol/limits.hpp"
#include "rendezvous/round/run.hpp"

namespace ddprun::round {

using namespace protocol;

namespace {

/// How long the verdict waits for the workers of these nodes: for as long as half of them may need.
/// One node alone, by mistake or on purpose, does not keep all others.
[[nodiscard]] Milliseconds shared_stop_wait(std::vector<Milliseconds> timeouts) {
  if (timeouts.empty()) return Milliseconds(0);
  const auto half = timeouts.begin() + static_cast<std::ptrdiff_t>((timeouts.size() - 1) / 2);
  std::nth_element(timeouts.begin(), half, timeouts.end());
  return std::min(*half, kStopWaitMax);
}

}  // namespace

void Run::finish(Done verdict) {
  Stopping stopping;
  stopping.verdict = std::move(verdict);
  stop(std::move(stopping));
}

/// With the failure that was to be answered by a restart.
void Run::finish_failed(NoRestart no_restart, TimePoint heard_at) {
  Stopping stopping;
  RunFailure& failure = stopping.verdict.failure.emplace();
  failure.no_restart = std::move(no_restart.why);
  failure.no_retry = std::move(no_restart.no_retry);
  failure.repeated = restarts_.repeated_text();
  stopping.why_no_restart =
      failure.no_restart.empty() ? reasons::no_restart_left(terms()) : failure.no_restart;
  stopping.failed_at = heard_at;
  stopping.blame(*restarts_.answered());
  stopping.round.add(*restarts_.answered());  // what ends in the stop of a wait came after it
  stop(std::move(stopping));
}

// The verdict is sent when no worker is left, so that no agent exits while workers are alive.
void Run::stop(Stopping stopping) {
  DDPRUN_ASSERT(in<Stopping>() == nullptr && in<Over>() == nullptr);
  if (auto* running = in<Running>()) stopping.round = std::move(running->round);
  why_ = stopping.verdict.text;
  announcer_.cancel();
  Stopping& entered = enter(std::move(stopping));
  const bool has_members = entered.round.present() > 0;
  std::vector<Milliseconds> timeouts;
  for (Agent* agent : roster_.by_silence()) {
    if (!has_members || is_member(*agent)) timeouts.push_back(agent->hello.stop_timeout);
    if (is_active(agent->state)) send_stop(*agent, why_);
  }
  entered.deadline = now_ + shared_stop_wait(std::move(timeouts)) + kStopMargin;
}

void Run::send_stop(Agent& agent, const std::string& reason) {
  roster_.set_state(agent, NodeState::kStopping);
  Stop stop{agent.runs, 15, agent.hello.stop_timeout, reason};
  const auto* stopping = in<Stopping>();
  if (stopping != nullptr) stop.verdict = stopping->verdict;
  stop.waits = in<Forming>() != nullptr;
  stop.requested = stopping != nullptr && stopping->requested;
  if (stop.waits && restarts_.has_answered({agent.runs, agent.last.author}))
    stop.restarts = restarts_.used().value();
  out_.send(agent.link, std::move(stop));
}

void Run::settle(Stopping& stopping) {
  if (roster_.active() > 0 && !is_due(stopping.deadline)) return;
  stopping.conclude(restarts_.used(), roster_);
  why_ = stopping.verdict.text;
  const int nodes = stopping.round.nodes();
  const Over& over =
      enter(Over{Ended{std::move(stopping.verdict), now_, nodes}, now_ + kLingerMax});
  out_.note(Level::kInfo, why_);  // the agents print it
  for (const Agent* agent : roster_.by_silence()) {
    // No agent believes a success as the first word.
    if (!agent->greeted && agent->runs == Round(0)) out_.send(agent->link, waiting(why_));
    out_.send(agent->link, over.ended.verdict);
  }
}

// A member that missed the verdict gets it; so does a late agent when there is nothing left to do
// for it.
void Run::late_hello(const Over& over, const Received& received, const Hello& hello) {
  const LinkId link = received.link;
  const Done& verdict = over.ended.verdict;
  const std::string text = reasons::over(options_.run_id, now_ - over.ended.at, verdict);
  const std::optional<Refused> other = agreement_.is_known() && !hello.claim
                                           ? refuse_command(hello, agreement_.agreed())
                                           : std::nullopt;
  if (other) {
    refuse(received, hello, *other);
  } else if (hello.claim && rounds_.is_of_run(hello.claim->stamp, hello.claim->succession.origin)) {
    out_.send(link, verdict);
  } else if (verdict.exit_code == 0 && !hello.claim) {  // ranks of another run have no part in it
    if (agreement_.is_known())
      out_.send(link, waiting(text));  // an agent believes no success as the first word
    out_.send(link, Done{0, text});
  } else {
    ++counters_.refusals;
    out_.send(link, Refused{RefusalCode::kRunOver, text, Milliseconds(0)});
  }
  out_.close(link);
}

}  // namespace ddprun::round
