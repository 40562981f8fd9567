// A node that joins and leaves again and again, and one that a stranger calls itself.
#include "tests/sim/sole_world.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using sim::milliseconds;
using sim::seconds;

namespace {

/// Two to four nodes, with the work of a minute; nodes 0 and 1 train.
struct Visited {
  Visited() : world(options()) {
    world.start_coordinator();
    for (int i = 0; i < 4; ++i) {
      sim::NodeOptions node;
      node.host = "n" + std::to_string(i);
      world.add_node(node);
    }
    world.start_agent(0);
    world.start_agent(1);
    world.run_for(seconds(1));
  }
  static sim::SoleOptions options() {
    sim::SoleOptions options;
    options.terms.nodes_min = 2;
    options.terms.nodes_max = 4;
    options.terms.last_call_timeout = milliseconds(100);
    options.work = seconds(60);
    return options;
  }
  [[nodiscard]] round::Status status() { return world.run().status(world.now()); }

  sim::SoleWorld world;
};

}  // namespace

TEST_CASE("an agent that comes and goes 40 times in a second ends few rounds, a newcomer joins") {
  Visited cluster;
  sim::SoleWorld& world = cluster.world;
  REQUIRE(cluster.status().round.number == Round(1));
  for (int visit = 0; visit < 40; ++visit) {
    world.start_agent(2);
    world.run_for(milliseconds(20));
    world.kill_agent(2, "is killed");
    world.run_for(milliseconds(5));
  }
  const int rounds = world.checker().rounds();
  CHECK(rounds <= 1 + 2 * (round::kOfAddress.free + 1));
  world.start_agent(3);
  world.run_for(milliseconds(50));
  CHECK(world.checker().rounds() == rounds + 1);
  CHECK(cluster.status().nodes.size() == 3);
  REQUIRE(world.run_until([&] { return world.agents_alive() == 0; }, seconds(120)));
  for (const int node : {0, 1, 3}) CHECK(world.exit_code(node) == 0);
}

TEST_CASE("a stranger that calls itself like an agent costs no round and no connection") {
  Visited cluster;
  sim::SoleWorld& world = cluster.world;
  for (int time = 0; time < 100; ++time) {
    world.impersonate(time % 2);
    world.run_for(milliseconds(30));
  }
  world.run_for(seconds(2));
  CHECK(cluster.status().counters.rounds == 1);
  CHECK(cluster.status().counters.losses == 0);
  CHECK(cluster.status().counters.refusals == 100);
  REQUIRE(world.run_until([&] { return world.agents_alive() == 0; }, seconds(120)));
  for (const int node : {0, 1}) CHECK(world.exit_code(node) == 0);
}
