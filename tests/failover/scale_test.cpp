// Ten thousand nodes of one run whose coordinators are lost one after the other: no two worlds, no
// restart, and a cost that grows with the nodes, not with their square.
#include "tests/failover/process.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::failover;

namespace {

WorldOptions options(int nodes) {
  WorldOptions options;
  options.nodes = nodes;
  options.terms.nodes_min = nodes / 2;
  options.terms.nodes_max = nodes;
  options.terms.max_restarts = 3;
  options.terms.last_call_timeout = seconds(1);
  options.coordinator_timeout = seconds(30);
  options.turn_max = microseconds(200);
  return options;
}

/// Looks twenty times a second: a look is linear in the nodes.
bool all_run(World& world, int nodes, int after, Duration limit) {
  const auto done = [&] {
    int running = 0;
    for (int host = 0; host < world.node_count(); ++host) {
      running += world.round_at(host) > after && world.runs_round(host) ? 1 : 0;
    }
    return running == nodes;
  };
  for (const TimePoint end = world.now() + limit; world.now() < end;) {
    if (done()) return true;
    world.run_for(milliseconds(50));
  }
  return done();
}

/// The host whose coordinator has all the nodes.
int leader(const World& world, int nodes) {
  for (int host = 0; host < world.node_count(); ++host) {
    if (world.process(host) == nullptr) continue;
    for (const Server* server : world.process(host)->servers()) {
      if (server->links() >= nodes) return host;
    }
  }
  return -1;
}

}  // namespace

TEST_CASE("ten thousand nodes lose their coordinator's process, then the next one's host") {
  constexpr int kNodes = 10'000;
  World world(options(kNodes));
  for (int host = 0; host < kNodes; ++host) {
    const Duration late = world.random().between(Duration(0), Duration(milliseconds(500)));
    world.after(host == 0 ? Duration(0) : late, [&world, host] { world.start_agent(host); });
  }
  REQUIRE(all_run(world, kNodes, 0, seconds(5)));
  REQUIRE(leader(world, kNodes) == 0);
  world.kill_agent(0, "is killed");
  REQUIRE(all_run(world, kNodes - 1, 1, seconds(2)));
  const int second = leader(world, kNodes - 1);
  REQUIRE(second > 0);
  world.power_off(second);
  const int last = world.round_at(second == 1 ? 2 : 1);
  REQUIRE(all_run(world, kNodes - 2, last, options(kNodes).terms.silence_max() + seconds(5)));
  CHECK(world.lineage().restarts() == 0);
  world.finish();
  const auto deadline = world.now() + seconds(60);
  while (world.agents_alive() > 0 && world.now() < deadline) world.run_for(milliseconds(100));
  for (int host = 0; host < kNodes; ++host) {
    if (host == 0 || host == second) continue;
    REQUIRE(world.end_of(host));
    CHECK(world.end_of(host)->exit_code == 0);
  }
}

TEST_CASE("steps of a fail-over grow with the number of nodes, not with its square") {
  const auto steps = [](int nodes) {
    World world(options(nodes));
    world.start_all();
    REQUIRE(all_run(world, nodes, 0, seconds(5)));
    world.kill_agent(0, "is killed");
    REQUIRE(all_run(world, nodes - 1, 1, seconds(2)));
    return world.steps();
  };
  CHECK(steps(2'000) < 6 * steps(500));
}
