// What is true of a World at a moment.
#include <algorithm>

#include "tests/failover/process.hpp"
#include "tests/failover/world.hpp"

namespace ddprun::failover {

const World::Process* World::process(int number) const {
  return host(number).process.get();
}

bool World::agent_lives(int number) const {
  return agent_alive(number) && !nodes_[index(number)].ended;
}

bool World::is_reached(int from, int to) const {
  return !net_.is_cut(from, to) && !net_.is_off(to) && !net_.is_frozen(to);
}

int World::round_at(int number) const {
  const Process* one = process(number);
  return one == nullptr ? 0 : one->stamp().number.value();
}

bool World::works(int number) const {
  return group_works(number) && nodes_[index(number)].group->running;
}

const Server* World::coordinator_of(int number) const {
  const Process* one = process(number);
  if (one == nullptr || !one->membership().has_coordinator()) return nullptr;
  const auto [peer_host, port] = one->peer();
  const Process* peer = peer_host < 0 ? nullptr : process(peer_host);
  if (peer == nullptr) return nullptr;
  for (const Server* server : peer->servers()) {
    if (server->port() == port) return server;
  }
  return nullptr;
}

bool World::runs_round(int number) const {
  const Process* own = process(number);
  if (own == nullptr || !works(number)) return false;
  const Server* server = coordinator_of(number);
  if (server == nullptr || server->run() == nullptr || server->is_finished()) return false;
  const auto& stamp = own->stamp();
  if (server->run()->phase() != round::Phase::kRunning) return false;
  if (!(server->run()->rounds().last() == stamp)) return false;
  return working(stamp) == nodes_[index(number)].group->round.group_size;
}

// Runs that began apart meet at the endpoint, if a process is there and their number of nodes is
// not fixed: see docs/FAILOVER.md.
bool World::are_one_run(const Server& left, const Server& right) const {
  if (&left == &right || left.run() == nullptr || right.run() == nullptr) return true;
  const Lineage::RoundFacts* one = lineage_.find(left.run()->rounds().last());
  const Lineage::RoundFacts* other = lineage_.find(right.run()->rounds().last());
  if (one == nullptr || other == nullptr) return true;
  const bool may_meet =
      process(0) != nullptr && several_.terms.nodes_min < several_.terms.nodes_max;
  return !may_meet && !(lineage_.origin(*one) == lineage_.origin(*other));
}

bool World::is_calm(std::string* why, std::set<std::string>* coordinators) const {
  const Server* coordinator = nullptr;
  for (int number = 0; number < node_count(); ++number) {
    if (!agent_lives(number)) continue;
    const Server* own = coordinator_of(number);
    const bool waits = own != nullptr && process(number)->is_spare() && !works(number);
    const bool fine = own != nullptr && (waits || runs_round(number)) &&
                      (coordinator == nullptr || are_one_run(*own, *coordinator));
    if (!fine) {
      if (why != nullptr) *why = "n" + std::to_string(number) + " has no place: " + picture();
      return false;
    }
    coordinator = own;
    if (coordinators != nullptr) coordinators->insert(own->name());
  }
  return true;
}

std::string World::picture() const {
  std::string text;
  for (int number = 0; number < node_count(); ++number) {
    const Process* one = process(number);
    text += "n" + std::to_string(number) + " ";
    if (one == nullptr) {
      text += "has no process; ";
      continue;
    }
    if (is_paused(number)) text += "paused, ";
    for (const std::string_view state : one->membership().state_names()) {
      text += std::string(state) + " ";
    }
    text += "in round " + std::to_string(round_at(number));
    const Server* at = coordinator_of(number);
    if (at != nullptr) text += " at " + at->name();
    for (const Server* server : one->servers()) {
      text += ", has " + server->name();
      if (server->run() != nullptr) {
        text += std::string(" ") + name_of(server->run()->phase()) + " of " +
                std::to_string(server->links());
      }
      if (server->has_moved()) text += " moved";
    }
    text += "; ";
  }
  return text;
}

}  // namespace ddprun::failover
