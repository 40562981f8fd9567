// Nodes that are silent. Silence is a loss where the run continues without the node. Where too few
// nodes would be left for a round it is none: the ranks could only be stopped and started again,
// and the node may be suspended, or the network be down for a moment. Its round waits for it, for
// as long as a run waits for any node.
#include <algorithm>
#include <utility>

#include "base/duration_text.hpp"
#include "rendezvous/round/run.hpp"

namespace ddprun::round {

using namespace protocol;

void Run::on(const Tick&) {
  if (!agreement_.is_known()) return;
  settle_duplicates();
  while (Agent* longest = roster_.longest_heard()) {
    if (now_ - longest->heard < terms().silence_max()) break;
    // An agent of this process was silent because the process was: a stall too short to notice
    // (extend_deadlines_after_stall) can still have been longer than the rest of its limit.
    if (longest->hello.runs_coordinator && longest->link != kNoLink) {
      roster_.heard(*longest, now_);
      continue;
    }
    if (take_duplicate(*longest)) continue;
    roster_.begin_silence(*longest);
    authority_.lose(*longest, Majority::Loss::kSilent);
  }
}

void Run::settle_silent() {
  if (roster_.silent() == 0) return;
  auto* running = in<Running>();
  if (running != nullptr && must_await_silent(*running)) return await_silent(*running);
  // A verdict does not wait for a node whose ranks have ended, and goes to it, too.
  const auto is_awaited = [this](const Agent* agent) {
    return in<Stopping>() == nullptr || is_active(agent->state);
  };
  while (roster_.silent() > 0) {
    const auto& agents = roster_.by_silence();
    const auto end = std::next(agents.begin(), roster_.silent());
    const auto found = std::find_if(agents.begin(), end, is_awaited);
    if (found == end) return;
    lose(**found, silence_of(**found), LinkEnd::kOpen);
  }
}

/// Whether no round may follow without them, here or where another coordinator has them.
bool Run::must_await_silent(const Running& running) const {
  if (is_due(running.return_deadline)) return false;
  const bool may_go_on = roster_.heard() >= terms().nodes_min && authority_.may_decide();
  const bool others_may = !authority_.may_decide() && roster_.silent() >= terms().nodes_min;
  return !may_go_on && !others_may;
}

/// The same of one whose link the network has broken.
bool Run::would_be_awaited(const Agent& agent) const {
  const int gone = losing_ + (agent.silent_since ? 0 : 1);
  return in<Running>() != nullptr && roster_.heard() - gone < terms().nodes_min;
}

// The answer to the question comes from an agent that has stayed on this link; what it had sent
// before is no proof of that.
void Run::await_silent(Running& running) {
  const auto& agents = roster_.by_silence();
  const auto end = std::next(agents.begin(), roster_.silent());
  for (auto at = std::find_if(agents.begin(), end, [](const Agent* one) { return one->call == 0; });
       at != end; ++at) {
    Agent& agent = **at;
    agent.call = next_question();
    forget_quiet(agent);
    out_.send(agent.link, Beat{agent.call});
    if (!running.return_deadline) running.return_deadline = now_ + terms().join_timeout;
    announcer_.request(now_);
  }
}

/// It has answered on the link that it had.
void Run::end_silence(Agent& agent) {
  authority_.hear(agent);
  come_back(agent);
}

// With it there may be enough nodes to continue without the others.
void Run::come_back(Agent& agent) {
  const Duration silence = now_ - *agent.silent_since;
  roster_.end_silence(agent, now_);
  settle_silent();
  auto* running = in<Running>();
  if (running == nullptr) return;
  // What it owes an answer to waited for it.
  if (is_member(agent) && !agent.answered) running->answer_deadline = now_ + kAnswerMax;
  const std::string back = reasons::back(describe(agent, ""), silence, rounds_.last().number);
  out_.note(Level::kInfo, back);
  if (roster_.silent() > 0) return announcer_.request(now_);
  running->return_deadline.reset();
  announcer_.cancel();
  for (const Agent* one : roster_.by_silence()) out_.send(one->link, waiting(back));
}

/// A node that is started again has the node rank of the silent one.
void Run::replace_silent(const Hello& hello) {
  if (!hello.node_rank) return;
  Agent* holder = roster_.by_node_rank(*hello.node_rank);
  if (holder != nullptr) lose(*holder, silence_of(*holder), LinkEnd::kOpen);
}

std::string Run::silence_of(const Agent& agent) const {
  const Duration silence = now_ - agent.silent_since.value_or(agent.heard);
  const bool was_awaited = agent.call != 0;
  return was_awaited ? reasons::silent_for(silence) : reasons::silent(terms());
}

/// What the round waits for.
std::string Run::awaited_text() const {
  std::vector<std::string> hosts;
  const auto& agents = roster_.by_silence();
  const auto end = std::next(agents.begin(), roster_.silent());
  std::transform(agents.begin(), end, std::back_inserter(hosts),
                 [](const Agent* agent) { return agent->host(); });
  return reasons::silent_nodes_awaited(hosts, terms());
}

}  // namespace ddprun::round
