// What an agent says of itself, against a run that must not believe all of it.
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

}  // namespace

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
