// Nodes that join and leave again and again: when the live round may end for one.
#include <algorithm>

#include "rendezvous/round/run.hpp"

namespace ddprun::round {

// Who was in a round stays in the next one.
bool Run::is_held_back(const Agent& agent) const {
  if (!agent.came_later || agent.taken_in) return false;
  return join_pace_.welcome_at(agent.peer.address, now_) > now_;
}

std::string Run::held_back_text(const Agent& agent) const {
  const std::string& address = agent.peer.address;
  return reasons::held_back(address, join_pace_.visits(address, now_),
                            join_pace_.welcome_at(address, now_) - now_);
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
    const TimePoint welcome_at = join_pace_.welcome_at(agent->peer.address, now_);
    running.welcome_at = std::min(running.welcome_at.value_or(welcome_at), welcome_at);
  }
  return hosts;
}

void Run::count_visit(const Agent& agent) {
  if (!agent.taken_in || in<Stopping>() != nullptr || in<Over>() != nullptr) return;
  const std::string& address = agent.peer.address;
  const Duration pause = join_pace_.left(address, agent.taken_in_at, now_);
  if (pause.count() == 0) return;
  note(Level::kWarning, reasons::comes_and_goes(address, join_pace_.visits(address, now_), pause));
}

}  // namespace ddprun::round
