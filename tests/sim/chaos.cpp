#include "tests/sim/chaos.hpp"

#include <algorithm>

#include "tests/sim/world.hpp"

namespace ddprun::sim {
namespace {

constexpr Duration kStorm = seconds(60);
// Long enough for every agent to be connected, shorter than most work.
constexpr Duration kCatchUp = seconds(25);
// After the storm: silence limit, reconnects, rebuild, a round, its work, success; each with room.
constexpr Duration kPeace = seconds(240);

struct Plan {
  WorldOptions world;
  int nodes = 2;
  bool numbered = false;
  int faults = 0;
};

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
  plan.world.delay_min = std::chrono::microseconds(100);
  plan.world.delay_max = milliseconds(random.chance(80) ? random.between(1, 20) : 300);
  plan.world.spawn_max = milliseconds(30);
  plan.world.stop_max = milliseconds(random.chance(70) ? 200 : 4000);
  plan.world.work = seconds(random.between(1, 40));
  plan.world.work_skew = seconds(random.between(0, 4));
  plan.world.peer_failure_percent = random.between(0, 100);
  plan.world.drift_percent = random.between(0, 8);
  plan.world.bytes = random.chance(10) ? Bytes::kCodec : Bytes::kPlain;
  plan.nodes = terms.nodes_max + (random.chance(40) ? random.between(1, 2) : 0);
  plan.numbered = plan.nodes == terms.nodes_max && random.chance(30);
  plan.faults = random.between(0, 30);
  return plan;
}

class Storm {
 public:
  Storm(World& world, const Plan& plan) : world_(world), plan_(plan) {}

  void schedule() {
    world_.start_coordinator();
    for (int i = 0; i < plan_.nodes; ++i) {
      NodeOptions node;
      node.host = "gpu-0" + std::to_string(i + 1);
      node.workers = random().between(1, 4);
      node.role = random().chance(80) ? "default" : "reader";
      if (plan_.numbered) node.node_rank = i;
      const int id = world_.add_node(std::move(node));
      const Duration late = random().chance(80) ? Duration(milliseconds(random().between(0, 500)))
                                                : Duration(seconds(random().between(0, 20)));
      at(late, [this, id] { start(id); });
    }
    for (int i = 0; i < plan_.faults; ++i) {
      at(random().between(Duration(0), Duration(kStorm)), [this] { fault(); });
    }
  }

  /// No more faults: everything is mended, and at least MIN agents are there if the run goes on.
  void calm() {
    calm_ = true;
    world_.start_coordinator();
    for (int id = 0; id < world_.node_count(); ++id) world_.set_partitioned(id, false);
    for (int id = 0; id < world_.node_count(); ++id) {
      if (world_.agents_alive() >= plan_.world.terms.nodes_min) break;
      if (!over()) world_.start_agent(id);
    }
  }

 private:
  Random& random() { return world_.random(); }
  void at(Duration delay, std::function<void()> what) {
    world_.timeline().after(delay, std::move(what));
  }
  bool over() { return world_.coordinator_up() && world_.run().over(); }
  void start(int id) {
    if (!calm_ && !over()) world_.start_agent(id);
  }
  void start_later(int id) {
    if (random().chance(75)) {
      at(milliseconds(random().between(20, random().chance(50) ? 900 : 15'000)),
         [this, id] { start(id); });
    }
  }

  void fault() {
    if (calm_ || over()) return;
    const int id = random().between(0, world_.node_count() - 1);
    const int kind = random().between(1, 100);
    if (kind <= 18) return world_.drop_link(id);
    if (kind <= 33) {
      world_.kill_agent(id, "is killed");
      return start_later(id);
    }
    if (kind <= 41) {
      world_.power_off(id);
      return start_later(id);
    }
    if (kind <= 52) return cut_off(id);
    if (kind <= 60) return world_.pause_agent(id, milliseconds(random().between(100, 9000)));
    if (kind <= 64) return world_.pause_coordinator(milliseconds(random().between(100, 6000)));
    if (kind <= 74) return lose_coordinator();
    if (kind <= 76) return world_.leave(id, 143, "agent got SIGTERM");
    if (kind <= 80) return everybody_drops();
    world_.fail_worker(id, "exit code 3", 3);
  }

  void cut_off(int id) {
    world_.set_partitioned(id, true);
    at(milliseconds(random().between(50, 12'000)),
       [this, id] { world_.set_partitioned(id, false); });
  }

  void lose_coordinator() {
    world_.crash_coordinator();
    at(milliseconds(random().between(20, random().chance(50) ? 500 : 12'000)),
       [this] { world_.start_coordinator(); });
  }

  void everybody_drops() {
    for (int id = 0; id < world_.node_count(); ++id) world_.drop_link(id);
  }

  World& world_;
  const Plan& plan_;
  bool calm_ = false;
};

/// Once everybody is connected again, workers belong to the live round or are being stopped.
void check_nobody_is_left_behind(const World& world) {
  if (!world.coordinator_up()) return;
  const round::Status status = world.run().status(world.now());
  if (status.phase != round::Phase::kRunning) return;
  for (int id = 0; id < world.node_count(); ++id) {
    const bool behind = world.group_works(id) && world.round_of(id) != status.round.number;
    require(!behind, "workers of an old round still run half a minute after peace");
  }
}

void check_end(World& world, const Plan& plan) {
  for (int id = 0; id < world.node_count(); ++id) {
    require(!world.agent_alive(id), "gpu-0" + std::to_string(id + 1) + " never ended");
    require(!world.group_alive(id), "workers outlived their agent");
  }
  require(world.checker().restarts() <= plan.world.terms.max_restarts,
          "more restarts than allowed");
}

}  // namespace

ChaosSummary run_chaos(std::uint64_t seed, const std::function<void(const std::string&)>& trace) {
  const Plan plan = make_plan(seed);
  World world(plan.world);
  if (trace) {
    trace("nodes " + std::to_string(plan.world.terms.nodes_min) + ":" +
          std::to_string(plan.world.terms.nodes_max) + " of " + std::to_string(plan.nodes) +
          ", restarts " + std::to_string(plan.world.terms.max_restarts));
    const TimePoint zero = world.now();
    world.trace([&world, trace, zero](const std::string& line) {
      const auto ms = std::chrono::duration_cast<milliseconds>(world.now() - zero).count();
      trace(std::to_string(ms) + " ms  " + line);
    });
  }
  Storm storm(world, plan);
  storm.schedule();
  world.run_for(kStorm);
  storm.calm();
  world.run_for(kCatchUp);
  check_nobody_is_left_behind(world);
  const auto quiet = [&world] { return world.agents_alive() == 0; };
  const Duration limit = kPeace + plan.world.work;
  if (!world.run_until(quiet, limit)) {
    require(world.agents_alive() < plan.world.terms.nodes_min,
            "enough agents are connected and no round ends within " +
                round::reasons::duration_text(limit) + " of peace");
    require(world.run_until(quiet, plan.world.terms.join_timeout), "agents wait for ever");
  }
  check_end(world, plan);
  ChaosSummary summary;
  summary.rounds = world.checker().rounds();
  summary.restarts = world.checker().restarts();
  summary.steps = world.steps();
  for (const auto& [process, code] : world.checker().exit_codes()) {
    summary.exit_code = std::max(summary.exit_code, code);
  }
  return summary;
}

}  // namespace ddprun::sim
