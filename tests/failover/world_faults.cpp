// What happens to the hosts, processes and wires of a World.
#include "tests/failover/process.hpp"
#include "tests/failover/world.hpp"

namespace ddprun::failover {

namespace {

[[nodiscard]] std::string n(int host) {
  return "n" + std::to_string(host);
}

}  // namespace

void World::start_all() {
  for (int number = 0; number < node_count(); ++number) start_agent(number);
}

void World::pause(int number) {
  if (!agent_alive(number) || !paused_.insert(number).second) return;
  say("-- " + n(number) + "'s process is suspended");
  let_run(number);
}

void World::resume(int number) {
  if (paused_.erase(number) == 0) return;
  say("-- " + n(number) + "'s process resumes");
  let_run(number);
}

void World::freeze(int number) {
  if (net_.is_off(number) || net_.is_frozen(number)) return;
  say("-- " + n(number) + "'s host freezes");
  net_.freeze(number, true);
  let_run(number);
}

void World::thaw(int number) {
  if (!net_.is_frozen(number)) return;
  say("-- " + n(number) + "'s host continues");
  net_.freeze(number, false);
  let_run(number);
}

/// Or not: its process is suspended, or its host frozen.
void World::let_run(int number) {
  Node& node = nodes_[index(number)];
  const bool stands = paused_.contains(number) || net_.is_frozen(number);
  if (!stands && !paused(number)) return;
  node.paused_until = stands ? TimePoint::max() : now();
  if (stands || !agent_alive(number)) return;
  woken_.erase(node.process);
  wake(node.process);
}

void World::cut(int from, int to) {
  if (net_.is_cut(from, to)) return;
  say("-- " + n(to) + " does not hear " + n(from));
  net_.cut(from, to, true);
}

void World::mend(int from, int to) {
  if (!net_.is_cut(from, to)) return;
  say("-- " + n(to) + " hears " + n(from) + " again");
  net_.cut(from, to, false);
}

void World::split(const std::set<int>& side) {
  for (int one = 0; one < node_count(); ++one) {
    for (int other = 0; other < node_count(); ++other) {
      if (side.contains(one) != side.contains(other)) cut(one, other);
    }
  }
}

void World::break_links(int left, int right) {
  say("-- the connections of " + n(left) + " and " + n(right) + " break");
  net_.break_links(left, right);
}

void World::heal() {
  say("-- all hosts hear each other, and all processes run");
  for (int one = 0; one < node_count(); ++one) {
    for (int other = 0; other < node_count(); ++other) net_.cut(one, other, false);
    thaw(one);
    resume(one);
  }
}

void World::finish() {
  say("-- workers succeed from now on");
  finishing_ = true;
}

}  // namespace ddprun::failover
