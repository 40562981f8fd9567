// Ten thousand agents in one deterministic world, and what they cost.

#include "tests/sim/sole_world.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using sim::milliseconds;
using sim::seconds;

namespace {

struct Cluster {
  explicit Cluster(int count) : nodes(count), world(options(count)) {
    world.start_coordinator();
    for (int i = 0; i < count; ++i) {
      sim::NodeOptions node;
      node.host = "n" + std::to_string(i);
      node.workers = 2;
      world.add_node(node);
      world.start_agent(i);
    }
  }
  static sim::SoleOptions options(int count) {
    sim::SoleOptions options;
    options.terms.nodes_min = count / 2;
    options.terms.nodes_max = count;
    options.terms.max_restarts = 3;
    options.terms.last_call_timeout = seconds(1);
    options.delay_max = milliseconds(20);
    options.work = seconds(10);
    return options;
  }
  bool all_in_round(int number, int size) {
    const auto& status = world.run().status(world.now());
    if (status.round.number.value() != number) return false;
    int running = 0;
    for (const auto& node : status.nodes) {
      if (node.group_rank >= 0 && node.state == protocol::NodeState::kRunning) ++running;
    }
    return running == size;
  }
  /// Looks ten times a second: a look is linear in the nodes.
  bool reaches(int number, int size) {
    for (int look = 0; look < 100; ++look) {
      if (all_in_round(number, size)) return true;
      world.run_for(milliseconds(100));
    }
    return false;
  }

  int nodes;
  sim::SoleWorld world;
};

}  // namespace

TEST_CASE("ten thousand agents join, lose one, gain one, survive a failure and end with 0") {
  Cluster cluster(10'000);
  sim::SoleWorld& world = cluster.world;
  REQUIRE(cluster.reaches(1, 10'000));
  const auto sends_to_join = world.sends();
  world.kill_agent(5'000, "is killed");
  REQUIRE(cluster.reaches(2, 9'999));
  world.start_agent(5'000);
  REQUIRE(cluster.reaches(3, 10'000));
  world.fail_worker(77, "SIGSEGV", 139);
  REQUIRE(cluster.reaches(4, 10'000));
  CHECK(world.checker().restarts() == 1);
  REQUIRE(world.run_until([&] { return world.agents_alive() == 0; }, seconds(120)));
  for (int i = 0; i < cluster.nodes; ++i) CHECK(world.exit_code(i) == 0);
  CHECK(sends_to_join < 8 * 10'000);
}

TEST_CASE("messages of a join grow with the number of agents, not with its square") {
  Cluster small(500);
  REQUIRE(small.reaches(1, 500));
  Cluster large(4'000);
  REQUIRE(large.reaches(1, 4'000));
  CHECK(large.world.sends() < 10 * small.world.sends());
}
