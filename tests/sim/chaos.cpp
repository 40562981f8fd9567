#include "tests/sim/chaos.hpp"

#include <algorithm>

#include "base/format.hpp"
#include "tests/sim/storm.hpp"

namespace ddprun::sim {
namespace {

// Long enough for every agent to be connected, shorter than most work.
constexpr Duration kCatchUp = seconds(25);
// A message, with the slowest wires.
constexpr Duration kOnItsWay = seconds(1);
constexpr Duration kLongestPause = seconds(60);
// After the storm: silence limit, reconnects, rebuild, a round, its work, success; each with room.
constexpr Duration kPeace = seconds(240);

/// Once all agents are connected again, workers belong to the live round or are being stopped.
bool somebody_is_behind(const SoleWorld& world) {
  if (!world.coordinator_up()) return false;
  const round::Status status = world.run().status(world.now());
  if (status.phase != round::Phase::kRunning) return false;
  for (int id = 0; id < world.node_count(); ++id) {
    if (world.group_works(id) && world.round_of(id) != status.round.number) return true;
  }
  return false;
}

void check_end(SoleWorld& world, const Plan& plan) {
  for (int id = 0; id < world.node_count(); ++id) {
    require(!world.agent_alive(id), world.host_of(id) + " never ended");
    require(!world.group_alive(id), "workers outlived their agent");
  }
  require(world.checker().restarts() <= plan.world.terms.max_restarts,
          "more restarts than allowed");
}

/// Nothing was done to this run that an agent should notice.
void check_undisturbed(SoleWorld& world, const Plan& plan) {
  const bool keeps = plan.world.survivor_percent.has_value();
  const bool kept = keeps && (world.checker().rounds() > 1 || plan.world.spare_percent > 0);
  if (plan.alien || kept) return;  // of ranks that are kept some end by themselves
  world.checker().on_undisturbed_end();
}

void live(SoleWorld& world, const Plan& plan, Storm& storm) {
  storm.schedule();
  world.run_for(Storm::kLength);
  storm.calm();
  require(world.run_until([&world] { return world.all_run(); }, kLongestPause),
          "a pause without an end");
  world.run_for(kCatchUp);
  // The live round can have begun just now, when a worker that survives SIGKILL was given up.
  require(world.run_until([&world] { return !somebody_is_behind(world); }, kOnItsWay),
          "workers of an old round still run half a minute after peace");
  const auto quiet = [&world] { return world.agents_alive() == 0; };
  const Duration limit = kPeace + plan.world.work + plan.world.work_skew;
  if (!world.run_until(quiet, limit)) {
    require(world.agents_joined() < plan.world.terms.nodes_min,
            "enough agents are connected and no round ends within " +
                duration_text(std::chrono::duration_cast<seconds>(limit)) + " of peace");
    require(world.run_until(quiet, plan.world.terms.join_timeout), "agents wait for ever");
  }
  check_end(world, plan);
  if (storm.harmless()) check_undisturbed(world, plan);
  world.check_records();
}

}  // namespace

Summary run_chaos(std::uint64_t seed, const ChaosOptions& options, const Print& trace) {
  const Plan plan = make_plan(seed);
  SoleWorld world(plan.world);
  world.checker().be_strict(options.strict);
  if (trace) {
    trace(words(plan));
    world.trace_with_time(trace);
  }
  Storm storm(world, plan, options.faults);
  try {
    live(world, plan, storm);
  } catch (const std::exception& violation) {
    throw Violation(violation.what() + ("\n" + words(plan)) + "\nfaults: " + storm.struck());
  }
  Summary summary;
  int worst = 0;
  summary.rounds = world.checker().rounds();
  summary.restarts = world.checker().restarts();
  summary.steps = world.steps();
  summary.transitions = world.transitions();
  summary.known_violations = world.checker().known_violations();
  for (const auto& [process, code] : world.checker().exit_codes()) {
    worst = std::max(worst, code);
  }
  summary.exits[worst] = 1;
  return summary;
}

}  // namespace ddprun::sim
