// Nodes that join and leave again and again: when the live round may end for one.
#include <algorithm>

#include "rendezvous/round/run.hpp"

namespace ddprun::round {

// Who was in a round stays in the next one.
bool Run::is_held_back(const Agent& agent) const {
  if (!agent.came_later || agent.taken_in) return false;
  return join_pace_.pace_of(agent.peer.address, now_).until > now_;
}

std::string Run::held_back_text(const Agent& agent) const {
  const Pace pace = join_pace_.pace_of(agent.peer.address, now_);
  return reasons::held_back(pace.who, pace.visits, pace.until - now_);
}

/// The hosts that the next round may start for. While all have to wait they are not looked at with
/// every message.
std::vector<std::string> Run::welcome_newcomers(Running& running) const {
  std::vector<std::string> hosts;
  if (running.welcome_at && now_ < *running.welcome_at) return hosts;
  running.welcome_at.reset();
  for (const Agent* agent : roster_.by_silence()) {
    if (running.round.has(*agent)) continue;
    if (!is_held_back(*agent)) {
      hosts.push_back(agent->host());
      continue;
    }
    const TimePoint welcome_at = join_pace_.pace_of(agent->peer.address, now_).until;
    running.welcome_at = std::min(running.welcome_at.value_or(welcome_at), welcome_at);
  }
  return hosts;
}

void Run::count_visit(const Agent& agent) {
  if (!agent.taken_in || in<Stopping>() != nullptr || in<Over>() != nullptr) return;
  const Duration pause = join_pace_.left(agent.peer.address, agent.taken_in_at, now_);
  if (pause.count() == 0) return;
  const Pace pace = join_pace_.pace_of(agent.peer.address, now_);
  out_.note(Level::kWarning, reasons::comes_and_goes(pace.who, pace.visits, pause));
}

}  // namespace ddprun::round
