// Single faults in a quiet world, and what follows within which time: docs/FAILOVER.md.
#include <csignal>

#include "tests/failover/process.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::failover;

namespace {

constexpr Duration kSilence = seconds(2);

WorldOptions quiet(int nodes, int least, int most) {
  WorldOptions options;
  options.nodes = nodes;
  options.terms.nodes_min = least;
  options.terms.nodes_max = most;
  options.terms.max_restarts = 5;
  options.terms.join_timeout = seconds(30);
  options.terms.last_call_timeout = seconds(1);
  options.terms.keep_alive_interval = milliseconds(400);
  options.terms.keep_alive_max_attempt = 5;
  options.spawn_max = milliseconds(5);
  options.stop_max = milliseconds(5);
  return options;
}

/// Whether these nodes run in one round, a later one than `after`, within this time.
bool run_together(World& world, const std::set<int>& hosts, int after, Duration limit) {
  return world.run_until(
      [&] {
        for (const int host : hosts) {
          if (!world.runs_round(host) || world.round_at(host) <= after) return false;
        }
        return true;
      },
      limit);
}

/// All nodes run in round 1.
std::unique_ptr<World> running(const WorldOptions& options) {
  auto world = std::make_unique<World>(options);
  std::set<int> members;
  for (int host = 0; host < options.terms.nodes_max; ++host) {
    world->start_agent(host);
    members.insert(host);
    world->run_for(milliseconds(20));
  }
  world->start_all();
  REQUIRE(run_together(*world, members, 0, seconds(3)));
  world->run_for(seconds(1));
  return world;
}

void succeed(World& world) {
  world.finish();
  const auto ended = [&world] { return world.agents_alive() == 0; };
  CHECK(world.run_until(ended, seconds(20)));
}

}  // namespace

TEST_CASE("the root is killed: all others are in the next round within 100 ms, at no restart") {
  for (const int nodes : {3, 4, 6}) {
    const auto world = running(quiet(nodes, 1, nodes));
    world->kill_agent(0, "is killed");
    std::set<int> rest;
    for (int host = 1; host < nodes; ++host) rest.insert(host);
    CHECK(run_together(*world, rest, 1, milliseconds(100)));
    CHECK(world->lineage().restarts() == 0);
    succeed(*world);
    CHECK(world->end_of(1)->exit_code == 0);
  }
}

TEST_CASE("the root is told to leave: all others are in the next round within 100 ms") {
  for (const int nodes : {2, 3, 6}) {
    const auto world = running(quiet(nodes, 1, nodes));
    world->signal_agent(0, SIGTERM);
    std::set<int> rest;
    for (int host = 1; host < nodes; ++host) rest.insert(host);
    CHECK(run_together(*world, rest, 1, milliseconds(100)));
    CHECK(world->lineage().restarts() == 0);
    world->run_for(seconds(1));
    REQUIRE(!world->agent_lives(0));
    CHECK(world->end_of(0)->exit_code == 143);
    world->start_agent(0);
    rest.insert(0);
    CHECK(run_together(*world, rest, 2, seconds(3)));
    succeed(*world);
  }
}

TEST_CASE("after a partition has healed all are in one round again") {
  const auto world = running(quiet(5, 1, 5));
  world->split({0, 1});
  CHECK(run_together(*world, {2, 3, 4}, 1, kSilence + seconds(1)));
  world->heal();
  CHECK(run_together(*world, {0, 1, 2, 3, 4}, 1, 3 * kSilence));
  CHECK(world->lineage().restarts() == 0);
  succeed(*world);
}

TEST_CASE("too few remain without the suspended root: the round continues, and is whole with it") {
  for (const int nodes : {2, 4}) {
    const auto world = running(quiet(nodes, nodes, nodes));
    world->pause(0);
    world->run_for(2 * kSilence);
    for (int host = 1; host < nodes; ++host) CHECK(world->works(host));
    world->resume(0);
    world->run_for(4 * kSilence);
    for (int host = 0; host < nodes; ++host) {
      CHECK(world->runs_round(host));
      CHECK(world->round_at(host) == 1);
    }
    succeed(*world);
  }
}

TEST_CASE("too few remain without a suspended leader: the round continues, and is whole with it") {
  const auto world = running(quiet(4, 3, 4));
  world->kill_agent(0, "is killed");
  REQUIRE(run_together(*world, {1, 2, 3}, 1, milliseconds(100)));
  const int round = world->round_at(1);
  world->pause(1);
  world->run_for(2 * kSilence);
  CHECK(world->works(2));
  world->resume(1);
  world->run_for(4 * kSilence);
  for (const int host : {1, 2, 3}) {
    CHECK(world->runs_round(host));
    CHECK(world->round_at(host) == round);
  }
  succeed(*world);
}

TEST_CASE("the root is killed while its successor is away: that one finds who took over") {
  for (const auto& [nodes, least] : {std::pair(4, 1), std::pair(4, 3), std::pair(5, 4)}) {
    for (const bool is_cut : {false, true}) {
      CAPTURE(nodes, least, is_cut);
      const auto world = running(quiet(nodes, least, nodes));
      if (is_cut) world->split({1});
      if (!is_cut) world->freeze(1);
      world->run_for(milliseconds(300));
      world->kill_agent(0, "is killed");
      world->run_for(seconds(7));
      if (is_cut) world->heal();
      if (!is_cut) world->thaw(1);
      std::set<int> rest;
      for (int host = 1; host < nodes; ++host) rest.insert(host);
      CHECK(run_together(*world, rest, 0, seconds(8)));
      succeed(*world);
    }
  }
}

TEST_CASE("too few remain without a suspended node: the round continues with it") {
  for (const int suspended : {1, 2}) {
    const auto world = running(quiet(3, 3, 3));
    world->pause(suspended);
    world->run_for(3 * kSilence);
    CHECK(world->works(0));
    world->resume(suspended);
    world->run_for(2 * kSilence);
    for (const int host : {0, 1, 2}) {
      CHECK(world->runs_round(host));
      CHECK(world->round_at(host) == 1);
    }
    succeed(*world);
  }
}

TEST_CASE("a host that is started again after its power failed ends the wait for that") {
  const auto world = running(quiet(3, 3, 3));
  world->power_off(2);
  world->run_for(3 * kSilence);
  CHECK(world->round_at(0) == 1);
  CHECK(world->works(0));
  world->start_agent(2);
  CHECK(run_together(*world, {0, 1, 2}, 1, kSilence));
}

TEST_CASE("a partition below MIN: no rank is stopped until it heals, whichever side is larger") {
  for (const std::set<int>& away : {std::set<int>{0}, std::set<int>{3}, std::set<int>{2, 3}}) {
    const auto world = running(quiet(4, 4, 4));
    world->split(away);
    world->run_for(3 * kSilence);
    for (int host = 0; host < 4; ++host) CHECK(world->works(host));
    world->heal();
    world->run_for(8 * kSilence);
    for (int host = 0; host < 4; ++host) {
      CHECK(world->runs_round(host));
      CHECK(world->round_at(host) == 1);
    }
    succeed(*world);
  }
}

TEST_CASE("the root's host loses its power twice: each time it finds the run when it is back") {
  const auto world = running(quiet(3, 1, 3));
  int round = 1;
  for (int time = 0; time < 2; ++time) {
    world->power_off(0);
    REQUIRE(run_together(*world, {1, 2}, round, 2 * kSilence));
    round = world->round_at(1);
    world->run_for(seconds(5));
    world->start_agent(0);
    CHECK(run_together(*world, {0, 1, 2}, round, seconds(4)));
    round = world->round_at(1);
  }
}

TEST_CASE("a run that began apart joins the older one, however many rounds it has had") {
  WorldOptions options = quiet(3, 1, 2);
  World world(options);
  for (const int host : {0, 1}) world.start_agent(host);
  REQUIRE(run_together(world, {0, 1}, 0, seconds(3)));
  world.run_for(seconds(1));
  world.kill_agent(0, "is killed");
  REQUIRE(run_together(world, {1}, 1, seconds(3)));
  world.split({1});
  for (const int host : {0, 2}) world.start_agent(host);
  REQUIRE(run_together(world, {0, 2}, 0, seconds(5)));
  for (int round = 1; round <= 3; ++round) {
    world.fail_worker(2, "exit code 3", 3);
    REQUIRE(run_together(world, {0, 2}, round, seconds(30)));
  }
  REQUIRE(world.round_at(0) > world.round_at(1));
  world.heal();
  const auto is_one = [&world] {
    std::set<std::string> coordinators;
    return world.is_calm(nullptr, &coordinators) && coordinators.size() == 1;
  };
  CHECK(world.run_until(is_one, seconds(20)));
  succeed(world);
}

/// Hosts 0 and 1 began a run, which host 1 leads by now; 0 and 2 another one, which 2 leads. These
/// two do not hear each other, and nothing is at the endpoint. `more` rounds are in host 1's run.
std::unique_ptr<World> two_leaders(int more) {
  auto world = std::make_unique<World>(quiet(3, 1, 2));
  for (const int host : {0, 1}) world->start_agent(host);
  REQUIRE(run_together(*world, {0, 1}, 0, seconds(3)));
  world->run_for(seconds(1));
  world->kill_agent(0, "is killed");
  REQUIRE(run_together(*world, {1}, 1, seconds(3)));
  world->split({1});
  for (const int host : {0, 2}) world->start_agent(host);
  REQUIRE(run_together(*world, {0, 2}, 0, seconds(5)));
  world->run_for(seconds(1));
  world->kill_agent(0, "is killed");
  REQUIRE(run_together(*world, {2}, 1, seconds(3)));
  for (int round = 0; round < more; ++round) {
    const int last = world->round_at(1);
    world->fail_worker(1, "exit code 3", 3);
    REQUIRE(run_together(*world, {1}, last, seconds(30)));
  }
  REQUIRE(world->works(1));
  REQUIRE(world->works(2));
  return world;
}

TEST_CASE("two leaders whose runs began apart meet, whichever is first at the endpoint") {
  for (const int more : {0, 2}) {
    for (const int first : {1, 2}) {
      CAPTURE(more, first);
      const auto world = two_leaders(more);
      world->start_agent(0);
      for (const int other : {0, 3 - first}) {
        world->mend(first, other);
        world->mend(other, first);
      }
      if (first == 1) world->cut(2, 0);
      world->run_for(seconds(3));
      world->heal();
      const auto is_one = [&world] {
        std::set<std::string> coordinators;
        return world->is_calm(nullptr, &coordinators) && coordinators.size() == 1;
      };
      CHECK(world->run_until(is_one, seconds(20)));
      succeed(*world);
    }
  }
}

TEST_CASE("a leader that was deposed takes over again later") {
  const auto world = running(quiet(4, 1, 4));
  world->kill_agent(0, "is killed");
  REQUIRE(run_together(*world, {1, 2, 3}, 1, milliseconds(100)));
  world->pause(1);
  REQUIRE(run_together(*world, {2, 3}, 2, 2 * kSilence));
  world->resume(1);
  REQUIRE(run_together(*world, {1, 2, 3}, 3, 3 * kSilence));
  world->run_for(seconds(1));
  const int round = world->round_at(1);
  world->kill_agent(2, "is killed");
  CHECK(run_together(*world, {1, 3}, round, 2 * kSilence));
}

TEST_CASE("a node that comes while another takes over gets a place") {
  const auto world = running(quiet(4, 1, 4));
  world->kill_agent(3, "is killed");
  REQUIRE(run_together(*world, {0, 1, 2}, 1, milliseconds(100)));
  world->power_off(0);
  world->run_for(kSilence);
  world->start_agent(3);
  world->run_for(milliseconds(500));
  world->start_agent(0);
  CHECK(run_together(*world, {0, 1, 2, 3}, 2, seconds(5)));
}

// Before the coordinator has said a word since, its loss may be the cause.
TEST_CASE("the root is killed as workers end after a failure: one restart is counted at most") {
  for (const int after_ms : {0, 1, 4, 8, 20}) {
    const auto world = running(quiet(3, 1, 3));
    world->fail_worker(1, "exit code 3", 3);
    world->run_for(milliseconds(after_ms));
    world->kill_agent(0, "is killed");
    CHECK(run_together(*world, {1, 2}, 1, seconds(5)));
    CHECK(world->lineage().restarts() == (after_ms < 4 ? 0 : 1));
  }
}

TEST_CASE("the root is killed while a restart is delayed: that one is counted, once") {
  const auto world = running(quiet(3, 1, 3));
  for (int round = 1; round <= 3; ++round) {
    world->fail_worker(1, "exit code 3", 3);
    REQUIRE(run_together(*world, {0, 1, 2}, round, seconds(30)));
  }
  const int before = world->lineage().restarts();
  const int last = world->round_at(1);
  world->fail_worker(1, "exit code 3", 3);
  world->run_for(milliseconds(200));
  REQUIRE(!world->runs_round(1));  // the next restart waits
  world->kill_agent(0, "is killed");
  CHECK(run_together(*world, {1, 2}, last, seconds(30)));
  CHECK(world->lineage().restarts() == before + 1);
}

/// Four nodes whose ranks survive (--restart=failed), and have said so.
std::unique_ptr<World> running_survivors() {
  WorldOptions options = quiet(4, 1, 4);
  options.survivor_percent = 100;
  options.steady = true;
  options.terms.hang_timeout = seconds(3);
  return running(options);
}

TEST_CASE("the root is killed: ranks that survive take the next round in their processes") {
  const auto world = running_survivors();
  const int started = world->workers_started();
  world->kill_agent(0, "is killed");
  CHECK(run_together(*world, {1, 2, 3}, 1, milliseconds(200)));
  CHECK(world->workers_started() == started);
  CHECK(world->lineage().restarts() == 0);
  succeed(*world);
  CHECK(world->exit_code(1) == 0);
}

TEST_CASE("a rank fails and the root is killed: of the ranks that survive none is started again") {
  for (const int after_ms : {1, 10, 60}) {
    const auto world = running_survivors();
    const int started = world->workers_started();
    world->fail_worker(1, "exit code 3", 3);
    world->run_for(milliseconds(after_ms));
    world->kill_agent(0, "is killed");
    CHECK(run_together(*world, {1, 2, 3}, 1, seconds(5)));
    // The one that took its place has not said yet that it survives.
    CHECK(world->workers_started() <= started + 2);
    succeed(*world);
  }
}

TEST_CASE("a partition heals: ranks of the minority that survive are kept for the one run") {
  const auto world = running_survivors();
  const int started = world->workers_started();
  world->split({0});
  REQUIRE(run_together(*world, {1, 2, 3}, 1, kSilence + seconds(1)));
  world->heal();
  CHECK(run_together(*world, {0, 1, 2, 3}, 1, 3 * kSilence));
  CHECK(world->workers_started() == started);
  succeed(*world);
}

TEST_CASE("the root is killed while no rank makes progress: its successor gives them up") {
  const auto world = running_survivors();
  for (const int host : {0, 1, 2, 3}) world->make_quiet(host, seconds(100));
  world->kill_agent(0, "is killed");
  REQUIRE(run_together(*world, {1, 2, 3}, 1, milliseconds(200)));
  for (const int host : {1, 2, 3}) world->make_quiet(host, seconds(100));
  const int round = world->round_at(1);
  CHECK(run_together(*world, {1, 2, 3}, round, seconds(20)));
  CHECK(world->hangs() > 0);
  CHECK(world->lineage().restarts() == 1);
}
