// The life of a node's workers, and what the coordinator learns of a round.
#include "rendezvous/client/membership/states.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::client;

namespace {

Group alive() {
  Group group;
  group.start(Round(3));
  return group;
}

}  // namespace

TEST_CASE("a group that succeeds straggles until nothing is left of it") {
  Group group = alive();
  CHECK(group.succeeded(Round(3)));
  CHECK(group.is_straggling());
  CHECK(group.can_be_stopped());
  CHECK(group.gone(Round(3)));
  CHECK(group.is_none());
  CHECK(group.round() == Round(3));  // the last that was here
}

TEST_CASE("a failure counts after a stop was ordered, a success does not") {
  Group group = alive();
  group.stop();
  CHECK_FALSE(group.can_be_stopped());
  CHECK_FALSE(group.succeeded(Round(3)));
  CHECK(group.failed(Round(3)));
  CHECK(std::string(group.name()) == "Ending");
}

TEST_CASE("what is said of another round, or after the end of the group, does not count") {
  Group group = alive();
  CHECK_FALSE(group.succeeded(Round(2)));
  CHECK_FALSE(group.failed(Round(2)));
  CHECK_FALSE(group.gone(Round(2)));
  CHECK(group.is_alive());
  CHECK(group.gone(Round(3)));
  CHECK_FALSE(group.gone(Round(3)));
  CHECK_FALSE(group.failed(Round(3)));
}

TEST_CASE("a failure is in a report only while it is its state") {
  NodeRound round;
  round.start.stamp.number = Round(3);
  round.failure = WorkerExit{};
  CHECK_FALSE(round.report(4000).failure.has_value());
  round.state = protocol::NodeState::kFailed;
  CHECK(round.report(4000).failure.has_value());
  CHECK(round.report(4000).store_port == 4000);
  CHECK(round.claim().state == protocol::NodeState::kFailed);
}
