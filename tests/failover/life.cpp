// A random life: a run begins, a storm passes over it, and what is left comes to an end that can be
// explained.
#include <algorithm>
#include <csignal>

#include "base/exit_status.hpp"
#include "base/format.hpp"
#include "tests/failover/process.hpp"
#include "tests/failover/storm.hpp"

namespace ddprun::failover {

namespace {

/// If a majority of the newest settled round lives, it has to continue soon.
[[nodiscard]] bool has_majority(World& world) {
  const Lineage::RoundFacts* newest = world.lineage().newest_settled();
  if (newest == nullptr || newest->stamp.number == Round(0)) return false;
  int here = 0;
  int votes = 0;
  for (int host = 0; host < world.node_count(); ++host) {
    const bool counts = world.agent_lives(host) &&
                        newest->takers.contains(world.process(host)->id().value()) &&
                        world.process(host)->stamp() == newest->stamp;
    here += counts ? 1 : 0;
    votes += counts && newest->voters.contains(world.process(host)->id().value()) ? 1 : 0;
  }
  if (votes < newest->needs) return false;  // no coordinator can know that it is settled
  return 2 * here > newest->size && here >= world.options().terms.nodes_min;
}

[[nodiscard]] bool some_round_runs(const World& world) {
  for (int host = 0; host < world.node_count(); ++host) {
    if (world.runs_round(host)) return true;
  }
  return false;
}

/// Returns whether two runs are left that began apart.
[[nodiscard]] bool check_recovery(World& world, Duration slow) {
  const WorldOptions& options = world.options();
  const Duration silence = options.terms.silence_max();
  const Duration soon = 4 * silence + options.stop_max + seconds(6) + slow;
  const bool majority = has_majority(world);
  const auto runs = [&world] {
    std::string why;
    return some_round_runs(world) || world.agents_alive() == 0 || world.is_calm(&why);
  };
  const bool came = world.run_until(runs, soon);
  require(!majority || came || !has_majority(world),
          "a majority of the last round lives and no round runs: " + world.picture());
  std::string why;
  const Duration longest = options.coordinator_timeout + options.terms.join_timeout + 6 * silence +
                           options.stop_max + seconds(10) + slow;
  const bool calm = world.run_until([&] { return world.is_calm(&why); }, longest);
  require(calm, duration_text(std::chrono::duration_cast<milliseconds>(longest)) +
                    " after the last fault " + why);
  std::set<std::string> coordinators;
  (void)world.is_calm(&why, &coordinators);
  return coordinators.size() > 1;
}

void check_finish(World& world, Duration slow) {
  world.finish();
  const auto quiet = [&world] {
    for (int host = 0; host < world.node_count(); ++host) {
      if (world.agent_alive(host)) return false;
    }
    return true;
  };
  const Duration longest =
      world.options().terms.join_timeout + world.options().coordinator_timeout + seconds(60) + slow;
  require(world.run_until(quiet, longest), "processes never end: " + world.picture());
}

[[nodiscard]] bool is_documented(int code) {
  static constexpr int kCodes[] = {kExitJoinTimeout,
                                   kExitRefused,
                                   kExitCoordinatorLost,
                                   kExitNodeLost,
                                   kExitHang,
                                   kExitUnkillable,
                                   kExitNotFound,
                                   0,
                                   1,
                                   3,
                                   128 + SIGINT,
                                   128 + SIGKILL,
                                   128 + SIGTERM};
  return std::find(std::begin(kCodes), std::end(kCodes), code) != std::end(kCodes);
}

[[nodiscard]] bool live(World& world, const Plan& plan, Storm& storm) {
  for (int host = 0; host < world.node_count(); ++host) {
    const Duration late = world.random().between(Duration(0), Duration(milliseconds(300)));
    world.after(late, [&world, host] { world.start_agent(host); });
  }
  (void)world.run_until([&world] { return some_round_runs(world); }, seconds(3));
  // Survivors that do not take their round, files that stall, and ranks that make no progress.
  const Duration slow = plan.workers_vary ? 2 * sim::kRejoin + seconds(60) : Duration(0);
  storm.begin();
  world.run_for(plan.length);
  storm.calm();
  world.heal();
  const bool two_runs = check_recovery(world, slow);
  check_finish(world, slow);
  world.check_records();
  return two_runs;
}

}  // namespace

sim::Summary run_life(std::uint64_t seed, const sim::Faults<Storm>& faults,
                      const sim::Print& trace) {
  const Plan plan = make_plan(seed);
  World world(plan.world);
  if (trace) {
    trace(words(plan));
    world.trace_with_time(trace);
  }
  Storm storm(world, plan, faults);
  sim::Summary summary;
  try {
    summary.two_runs = live(world, plan, storm);
  } catch (const sim::Violation& violation) {
    throw sim::Violation(violation.what() + ("\n" + words(plan)));
  }
  summary.rounds = world.lineage().rounds();
  summary.restarts = world.lineage().restarts();
  summary.steps = world.steps();
  for (int host = 0; host < world.node_count(); ++host) {
    const auto code = world.exit_code(host);
    if (!code) continue;
    require(is_documented(*code), "exit code " + std::to_string(*code));
    ++summary.exits[*code];
  }
  return summary;
}

}  // namespace ddprun::failover
