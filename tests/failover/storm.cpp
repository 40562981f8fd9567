#include "tests/failover/storm.hpp"

#include <csignal>

#include <algorithm>
#include <utility>

#include "base/format.hpp"
#include "tests/failover/process.hpp"
#include "tests/sim/storm.hpp"

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
  plan.workers_vary = random.chance(60);
  if (!plan.workers_vary) return plan;
  world.workers = random.between(1, 3);
  world.graceful_percent = random.chance(50) ? 0 : 30;
  world.drain_max = milliseconds(random.chance(50) ? 1 : 500);
  world.evidence_max = milliseconds(random.chance(50) ? 1 : 1000);
  if (random.chance(50)) terms.hang_timeout = seconds(random.between(1, 10));
  if (random.chance(70)) world.survivor_percent = random.chance(50) ? 100 : 60;
  if (world.survivor_percent && random.chance(50)) world.spare_percent = random.between(1, 100);
  return plan;
}

std::string words(const Plan& plan) {
  const protocol::Terms& terms = plan.world.terms;
  return std::to_string(plan.world.nodes) + " hosts, nodes " + std::to_string(terms.nodes_min) +
         ":" + std::to_string(terms.nodes_max) + ", silence limit " +
         duration_text(terms.silence_max()) + ", coordinator_timeout " +
         duration_text(std::chrono::duration_cast<milliseconds>(plan.world.coordinator_timeout)) +
         ", join_timeout " + duration_text(terms.join_timeout) + ", latency up to " +
         duration_text(std::chrono::duration_cast<milliseconds>(plan.world.delay_max)) +
         sim::words_of_survivors(plan.world);
}

namespace {

void kill(Storm& storm, int node) {
  storm.world().kill_agent(node, "is killed");
}

void power_off(Storm& storm, int node) {
  storm.world().power_off(node);
}

void start(Storm& storm, int) {
  for (int node = 0; node < storm.world().node_count(); ++node) {
    if (!storm.world().agent_alive(node) && storm.random().chance(50)) {
      storm.world().start_agent(node);
    }
  }
}

void pause(Storm& storm, int node) {
  storm.world().pause(node);
  storm.world().after(storm.while_(), [&world = storm.world(), node] { world.resume(node); });
}

void freeze(Storm& storm, int node) {
  storm.world().freeze(node);
  storm.world().after(storm.while_(), [&world = storm.world(), node] { world.thaw(node); });
}

void stop(Storm& storm, int node) {
  storm.world().signal_agent(node, SIGTERM);
}

void break_links(Storm& storm, int node) {
  storm.world().break_links(node, storm.any());
}

void cut_one_way(Storm& storm, int node) {
  storm.cut_for(node, storm.any(), storm.while_());
}

void cut(Storm& storm, int node) {
  const int other = storm.any();
  const Duration time = storm.while_();
  storm.cut_for(node, other, time);
  storm.cut_for(other, node, time);
}

/// Those hosts from all others.
void separate(Storm& storm, const std::set<int>& side) {
  const Duration time = storm.while_();
  const bool one_way = storm.random().chance(15);
  for (int left = 0; left < storm.world().node_count(); ++left) {
    for (int right = 0; right < storm.world().node_count(); ++right) {
      if (side.contains(left) == side.contains(right)) continue;
      if (!one_way || side.contains(left)) storm.cut_for(left, right, time);
    }
  }
}

void cut_off(Storm& storm, int node) {
  separate(storm, {node});
}

void split(Storm& storm, int node) {
  std::set<int> side{node};
  for (int other = 0; other < storm.world().node_count(); ++other) {
    if (storm.random().chance(50)) side.insert(other);
  }
  separate(storm, side);
}

const sim::Faults<Storm>::Fault kFaults[] = {
    {"kill", 12, false, kill},
    {"power-off", 4, false, power_off},
    {"start", 20, true, start},
    {"pause", 20, false, pause},
    {"freeze", 8, false, freeze},
    {"stop", 8, false, stop},
    {"break-links", 12, false, break_links},
    {"cut-one-way", 8, false, cut_one_way},
    {"cut", 8, false, cut},
    {"cut-off", 12, false, cut_off},
    {"split", 16, false, split},
};

}  // namespace

sim::Faults<Storm> failover_faults() {
  return sim::Faults<Storm>({std::begin(kFaults), std::end(kFaults)});
}

Storm::Storm(World& world, const Plan& plan, sim::Faults<Storm> faults)
    : world_(world), plan_(plan), random_(plan.world.seed * 31 + 7), faults_(std::move(faults)) {
  const auto leave_out = [this](std::string_view name) {
    static_cast<void>(faults_.weigh(name, 0));
  };
  if (!plan.leaves) leave_out("stop");
  if (!plan.resets) leave_out("break-links");
  if (plan.workers_vary) return;
  for (const sim::WorkerFault& fault : sim::worker_faults()) {
    if (fault.name != "fail-worker") leave_out(fault.name);
  }
}

void Storm::begin() {
  if (faults_.total() == 0) return;
  const Duration pause = random_.between(Duration(milliseconds(1)), plan_.pause_max);
  world_.after(pause, [this] { strike(); });
}

void Storm::strike() {
  if (is_over_) return;
  const auto& fault = faults_.pick(random_.between(1, faults_.total()));
  const int node = random_.chance(50) ? leader() : any();
  world_.say("-- " + std::string(fault.name) + " -- " + world_.host_of(node));
  fault.strike(*this, node);
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

void Storm::cut_for(int from, int to, Duration time) {
  if (from == to) return;
  world_.cut(from, to);
  world_.after(time, [this, from, to] { world_.mend(from, to); });
}

}  // namespace ddprun::failover
