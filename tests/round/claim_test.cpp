// What an agent says of itself, against a run that must not believe all of it.
#include <malloc.h>

#include "rendezvous/protocol/limits.hpp"
#include "tests/round/desk.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::round;
using namespace ddprun::protocol;

namespace {

/// Node `host` of at most three is back from round 5 of another coordinator.
Hello back(Desk& desk, const std::string& host, int group_rank, int group_size, NodeState state) {
  Hello hello = desk.hello(host, 1, 3);
  hello.claim = Claim{{Round(5), "c0"}, group_rank, group_size, RestartCount(0), state};
  return hello;
}

/// Bytes that this process has allocated; 0 with an allocator of a sanitizer.
std::size_t allocated() {
  const struct mallinfo2 now = ::mallinfo2();
  return now.uordblks + now.hblkhd;
}

/// By how much `work` lets the allocated memory grow.
template <class Work>
std::size_t growth(Work work) {
  const std::size_t before = allocated();
  work();
  const std::size_t after = allocated();
  return after > before ? after - before : 0;
}

}  // namespace

TEST_CASE("the memory of a claim does not depend on the size of the round that it claims") {
  Desk desk;
  Hello claims = back(desk, "a", 0, kAgentsPerRunMax, NodeState::kRunning);
  CHECK(growth([&] { desk.say(1, claims); }) < 16 * 1024);
  CHECK(desk.run_.status(desk.now_).phase == Phase::kRebuilding);
}

TEST_CASE("an agent that says hello again and again with a claim takes no more memory each time") {
  Desk desk;
  const Hello again = back(desk, "a", 0, 3, NodeState::kRunning);
  desk.say(1, again);
  desk.forget();
  const auto grown = growth([&] {
    for (int count = 0; count < 5000; ++count) {
      desk.say(1, again);
      desk.forget();
    }
  });
  CHECK(grown < 32 * 1024);
  desk.beat_for(seconds(5), {1});
  CHECK(desk.last<StartRound>(1).has_value());
}

TEST_CASE("a place outside the claimed round is not a rank, also when a second claim is inside") {
  Desk desk;
  desk.say(1, back(desk, "a", 65535, 1, NodeState::kRunning));
  desk.say(1, back(desk, "a", 0, 1, NodeState::kRunning));
  CHECK(desk.run_.status(desk.now_).phase == Phase::kRebuilding);
}

TEST_CASE("an agent has one place in a round that is rebuilt, whatever it claims") {
  Desk desk;
  desk.say(1, back(desk, "a", 1, 3, NodeState::kSucceeded));
  desk.say(1, back(desk, "a", 0, 3, NodeState::kSucceeded));
  desk.say(2, back(desk, "b", 2, 3, NodeState::kRunning));
  CHECK(desk.run_.status(desk.now_).phase == Phase::kRebuilding);
  desk.say(3, back(desk, "c", 0, 3, NodeState::kRunning));
  CHECK(desk.run_.status(desk.now_).phase == Phase::kRunning);
}

TEST_CASE("an agent that claims a newer round loses its place in the older one") {
  Desk desk;
  desk.say(1, back(desk, "a", 0, 2, NodeState::kRunning));
  Hello other = back(desk, "a", 60000, 65536, NodeState::kRunning);
  other.claim->stamp.author = "c9";
  desk.say(1, other);
  desk.say(2, back(desk, "b", 1, 2, NodeState::kRunning));
  CHECK(desk.run_.status(desk.now_).phase == Phase::kRebuilding);
}

TEST_CASE("a node succeeds once, however often it reports that it did") {
  Desk desk;
  desk.join_two();
  desk.both_run();
  for (const NodeState state :
       {NodeState::kSucceeded, NodeState::kRunning, NodeState::kSucceeded}) {
    desk.say(2, desk.report(1, state));
  }
  CHECK(desk.run_.status(desk.now_).phase == Phase::kRunning);
  CHECK_FALSE(desk.last<Stop>(1).has_value());
}
