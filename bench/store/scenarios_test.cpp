// Runs the benchmark's scenarios with small sizes against a server in this process.
#include "bench/store/scenarios.hpp"

#include "tests/store/live.hpp"

using namespace ddprun::store;
using namespace ddprun::store::bench;

TEST_CASE("every scenario of the store's benchmark runs and verifies its replies") {
  LiveServer server;
  int number = 0;
  const auto target = [&] {
    return Target{"127.0.0.1", server.port(), {}, "tag" + std::to_string(number++)};
  };
  for (const char* verb : {"ping", "get", "add", "set", "check", "wait"}) {
    CHECK(in_sequence(target(), verb, 20).requests == 20);
    CHECK(closed_loop(target(), verb, 8, 0.01).requests >= 8);
  }
  CHECK(bench::accept(target(), 50).requests == 50);
  CHECK(bench::barrier(target(), 20).wall_s > 0);
  CHECK(nccl_start(target(), 8).wall_s > 0);
  CHECK(gloo_start(target(), 8).wall_s > 0);
  CHECK(set_value(target(), 1 << 20, 3).requests == 3);
  CHECK(get_value(target(), 1 << 20, 3).requests == 3);
  CHECK(fan_out(target(), 1 << 20, 10).wall_s > 0);
  bool held = false;
  hold_idle(target(), 10, [&] { held = true; });
  CHECK(held);
}

TEST_CASE("a scenario fails if a reply is wrong") {
  LiveServer server;
  const Target target{"127.0.0.1", server.port(), {}, "t"};
  CHECK(in_sequence(target, "add", 5).requests == 5);
  CHECK_THROWS_WITH(in_sequence(target, "add", 5), ContainsSubstring("wrong reply"));
}
