#include "tests/failover/storm.hpp"

#include <csignal>

#include <algorithm>
#include <utility>

#include "base/duration_text.hpp"
#include "tests/failover/process.hpp"

namespace ddprun::failover {

Plan make_plan(std::uint64_t seed) {
  Random random(seed * 7919 + 17);
  Plan plan;
  WorldOptions& world = plan.world;
  world.seed = seed;
  world.nodes = random.between(2, 6);
  protocol::Terms& terms = world.terms;
  const int spares = world.nodes > 2 && random.chance(30) ? random.between(1, 2) : 0;
  terms.nodes_max = std::max(2, world.nodes - spares);
  terms.nodes_min = random.between(1, terms.nodes_max);
  terms.max_restarts = 100;
  terms.join_timeout = seconds(random.between(10, 20));
  terms.last_call_timeout = milliseconds(random.between(0, 1500));
  terms.keep_alive_interval = milliseconds(random.between(2, 10) * 100);
  terms.keep_alive_max_attempt = random.between(3, 5);
  world.coordinator_timeout = terms.silence_max() * random.between(2, 4);
  world.delay_min = microseconds(200);
  world.delay_max = milliseconds(random.chance(70) ? random.between(1, 5) : 40);
  world.drift_percent = random.between(0, 3);
  world.stop_max = milliseconds(random.chance(70) ? 50 : 1500);
  world.peer_failure_percent = random.chance(50) ? 0 : random.between(10, 100);
  world.turn_max = random.chance(50) ? Duration(0) : Duration(milliseconds(random.between(1, 4)));
  plan.length = seconds(random.between(5, 30));
  plan.pause_max = milliseconds(random.chance(50) ? 500 : 5000);
  plan.leaves = random.chance(30);
  return plan;
}

std::string words(const Plan& plan) {
  const protocol::Terms& terms = plan.world.terms;
  return std::to_string(plan.world.nodes) + " hosts, nodes " + std::to_string(terms.nodes_min) +
         ":" + std::to_string(terms.nodes_max) + ", silence limit " +
         duration_text(terms.silence_max()) + ", coordinator_timeout " +
         duration_text(std::chrono::duration_cast<milliseconds>(plan.world.coordinator_timeout)) +
         ", join_timeout " + duration_text(terms.join_timeout) + ", latency up to " +
         duration_text(std::chrono::duration_cast<milliseconds>(plan.world.delay_max));
}

void Storm::begin() {
  const Duration pause = random_.between(Duration(milliseconds(1)), plan_.pause_max);
  world_.after(pause, [this] { strike(); });
}

void Storm::strike() {
  if (is_over_) return;
  const int kind = random_.between(1, 34);
  kind <= 20 ? strike_process(kind) : strike_wires(kind);
  begin();
}

Duration Storm::while_() {
  const Duration silence = plan_.world.terms.silence_max();
  const int share = random_.between(1, 100);
  if (share <= 30) return random_.between(Duration(milliseconds(1)), silence / 4);
  if (share <= 80) return random_.between(silence / 4, 2 * silence);
  return random_.between(silence, 5 * silence);
}

int Storm::leader() {
  std::vector<int> leaders;
  for (int host = 0; host < world_.node_count(); ++host) {
    const World::Process* node = world_.process(host);
    if (node == nullptr) continue;
    for (const Server* server : node->servers()) {
      if (server->links() > 0) leaders.push_back(host);
    }
  }
  if (leaders.empty()) return any();
  return leaders[static_cast<std::size_t>(
      random_.between(0, static_cast<int>(leaders.size()) - 1))];
}

void Storm::strike_process(int kind) {
  const int host = random_.chance(50) ? leader() : any();
  if (kind <= 3) return world_.kill_agent(host, "is killed");
  if (kind == 4) return world_.power_off(host);
  if (kind <= 9) {
    for (int other = 0; other < world_.node_count(); ++other) {
      if (world_.process(other) == nullptr && random_.chance(50)) world_.start_agent(other);
    }
    return;
  }
  if (kind <= 14) {
    world_.pause(host);
    return world_.after(while_(), [this, host] { world_.resume(host); });
  }
  if (kind <= 16) {
    world_.freeze(host);
    return world_.after(while_(), [this, host] { world_.thaw(host); });
  }
  if (kind <= 18) return world_.fail_worker(any(), "exit code 3", 3);
  if (plan_.leaves) world_.signal_agent(random_.chance(50) ? leader() : any(), SIGTERM);
}

void Storm::cut_for(int from, int to, Duration time) {
  if (from == to) return;
  world_.cut(from, to);
  world_.after(time, [this, from, to] { world_.mend(from, to); });
}

void Storm::strike_wires(int kind) {
  const int one = random_.chance(50) ? leader() : any();
  const int other = any();
  const Duration time = while_();
  if (kind <= 23) {
    if (plan_.resets) world_.break_links(one, other);
    return;
  }
  if (kind <= 25) return cut_for(one, other, time);
  if (kind <= 27) {
    cut_for(one, other, time);
    return cut_for(other, one, time);
  }
  std::set<int> side{one};
  if (kind >= 31) {
    for (int host = 0; host < world_.node_count(); ++host) {
      if (random_.chance(50)) side.insert(host);
    }
  }
  const bool one_way = random_.chance(15);
  for (int left = 0; left < world_.node_count(); ++left) {
    for (int right = 0; right < world_.node_count(); ++right) {
      if (side.contains(left) == side.contains(right)) continue;
      if (!one_way || side.contains(left)) cut_for(left, right, time);
    }
  }
}

}  // namespace ddprun::failover
