#include "tests/sim/storm.hpp"

#include <utility>

#include "base/format.hpp"

namespace ddprun::sim {

Plan make_plan(std::uint64_t seed) {
  Random random(seed * 7919 + 17);
  Plan plan;
  plan.world.seed = seed;
  protocol::Terms& terms = plan.world.terms;
  terms.nodes_min = random.between(1, 4);
  terms.nodes_max = terms.nodes_min + (random.chance(60) ? random.between(1, 3) : 0);
  terms.max_restarts = random.between(0, 6);
  terms.join_timeout = seconds(random.between(60, 300));
  terms.last_call_timeout = milliseconds(random.between(0, 3000));
  terms.keep_alive_max_attempt = random.between(2, 5);
  SoleOptions& world = plan.world;
  world.coordinator = random.chance(50) ? Coordinator::kInRoot : Coordinator::kAlone;
  world.delay_min = std::chrono::microseconds(100);
  world.delay_max = milliseconds(random.chance(80) ? random.between(1, 20) : 300);
  world.spawn_max = milliseconds(30);
  world.stop_max = milliseconds(random.chance(70) ? 200 : 4000);
  world.drain_max = milliseconds(random.chance(50) ? 1 : 500);
  world.evidence_max = milliseconds(random.chance(50) ? 1 : 1000);
  world.work = seconds(random.between(1, 40));
  world.work_skew = seconds(random.chance(75) ? random.between(0, 4) : 60);
  world.peer_failure_percent = random.between(0, 100);
  world.graceful_percent = random.chance(50) ? 0 : 30;
  world.drift_percent = random.between(0, 8);
  world.bytes = random.chance(10) ? Bytes::kCodec : Bytes::kPlain;
  plan.nodes = terms.nodes_max + (random.chance(40) ? random.between(1, 2) : 0);
  plan.numbered = plan.nodes == terms.nodes_max && random.chance(30);
  plan.alien = plan.nodes > terms.nodes_min && random.chance(10);
  plan.faults = random.between(0, 30);
  if (random.chance(20)) terms.min_uptime = seconds(random.between(1, 60));
  if (random.chance(50)) terms.hang_timeout = seconds(random.between(1, 20));
  if (random.chance(40)) world.survivor_percent = random.chance(50) ? 100 : 60;
  if (world.survivor_percent && random.chance(50)) world.spare_percent = random.between(1, 100);
  const bool finishes = world.survivor_percent && random.chance(50);
  if (finishes) plan.last_step = random.between(Duration(seconds(1)), Storm::kLength);
  return plan;
}

std::string words(const Plan& plan) {
  const protocol::Terms& terms = plan.world.terms;
  const bool in_root = plan.world.coordinator == Coordinator::kInRoot;
  return "nodes " + std::to_string(terms.nodes_min) + ":" + std::to_string(terms.nodes_max) +
         " of " + std::to_string(plan.nodes) + ", restarts " + std::to_string(terms.max_restarts) +
         (in_root ? ", the coordinator in gpu-01's process" : ", the coordinator alone") +
         ", silence limit " + duration_text(terms.silence_max()) + words_of_survivors(plan.world) +
         (plan.last_step ? ", nodes join as ranks take their last step" : "") +
         (plan.alien ? ", the last node runs another command" : "");
}

std::string words_of_survivors(const WorldOptions& world) {
  if (!world.survivor_percent) return "";
  const std::string text =
      ", " + std::to_string(*world.survivor_percent) + " % of the workers survive";
  if (world.spare_percent == 0) return text;
  return text + ", a spare takes " + std::to_string(world.spare_percent) + " % of the others";
}

void Storm::schedule() {
  if (plan_.world.coordinator == Coordinator::kAlone) world_.start_coordinator();
  for (int i = 0; i < plan_.nodes; ++i) {
    NodeOptions node;
    node.host = "gpu-0" + std::to_string(i + 1);
    node.workers = random().between(1, 4);
    node.role = random().chance(80) ? "default" : "reader";
    node.blind = random().chance(50);
    node.fingerprint = plan_.alien && i + 1 == plan_.nodes ? "another" : "command";
    if (plan_.numbered) node.node_rank = i;
    const int id = world_.add_node(std::move(node));
    const Duration late = random().chance(80) ? Duration(milliseconds(random().between(0, 500)))
                                              : Duration(seconds(random().between(0, 20)));
    later(late, [this, id] { start(id); });
  }
  if (faults_.total() == 0) return;
  if (plan_.last_step) world_.timeline().after(*plan_.last_step, [this] { finish_as_it_grows(); });
  for (int i = 0; i < plan_.faults; ++i) {
    world_.timeline().after(random().between(Duration(0), kLength), [this] { strike(); });
  }
}

void Storm::calm() {
  calm_ = true;
  world_.disturb();
  for (int id = 0; id < world_.node_count(); ++id) world_.set_partitioned(id, false);
  if (plan_.world.coordinator == Coordinator::kAlone) {
    world_.start_coordinator();
  } else if (!over()) {
    world_.start_agent(0);
  }
  for (int id = 0; id < world_.node_count(); ++id) {
    if (world_.agents_alive() >= plan_.world.terms.nodes_min) break;
    if (!over()) world_.start_agent(id);
  }
}

// No agent of a run that has ended is started: that would be another run.
bool Storm::over() const {
  return world_.checker().succeeded() || world_.somebody_ended() ||
         (world_.coordinator_up() && world_.run().over());
}

void Storm::start(int id) {
  if (!calm_ && !over()) world_.start_agent(id);
}

void Storm::start_later(int id) {
  if (!random().chance(75)) return;
  later(milliseconds(random().between(20, random().chance(50) ? 900 : 15'000)),
        [this, id] { start(id); });
}

void Storm::lose_coordinator() {
  const auto away = milliseconds(random().between(20, random().chance(50) ? 500 : 12'000));
  if (plan_.world.coordinator == Coordinator::kInRoot) {
    world_.kill_agent(0, "is killed, and the coordinator with it");
    return later(away, [this] { start(0); });
  }
  world_.crash_coordinator();
  later(away, [this] { world_.start_coordinator(); });
}

bool Storm::may_pause_coordinator() {
  if (world_.now() < no_pause_before_) return false;
  no_pause_before_ = world_.now() + seconds(30);
  return true;
}

// A node joins while the ranks of the round take their last step: its hello is read before they
// end, between their ends, or after them.
void Storm::finish_as_it_grows() {
  if (calm_) return;
  world_.say("-- finish-as-it-grows --");
  for (int id = 0; id < world_.node_count(); ++id) {
    if (world_.agent_alive(id)) continue;
    start(id);
    break;
  }
  const Duration most = 8 * plan_.world.delay_max + milliseconds(100);
  for (int id = 0; id < world_.node_count(); ++id) world_.take_last_step(id, Duration(0), most);
}

void Storm::strike() {
  if (calm_) return;
  const int id = random().between(0, world_.node_count() - 1);
  const Faults<Storm>::Fault& fault = faults_.pick(random().between(1, faults_.total()));
  struck_ += (struck_.empty() ? "" : " ") + std::string(fault.name);
  harmless_ = harmless_ && fault.harmless;
  world_.say("-- " + std::string(fault.name) + " -- " + world_.host_of(id));
  if (!fault.name.starts_with("notify")) world_.disturb();
  fault.strike(*this, id);
}

}  // namespace ddprun::sim
