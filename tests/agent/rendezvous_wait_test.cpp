// What the line on a terminal says while no round runs.
#include "agent/coordinate/link_messages.hpp"

#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace std::chrono_literals;

namespace {

const TimePoint kStart = TimePoint(100s);
const std::string kForCoordinator = "waiting for the coordinator at gpu-01:29400, ";

protocol::Waiting waiting_for(int here, int min, int max, std::chrono::seconds left) {
  protocol::Waiting waiting;
  waiting.here = here;
  waiting.nodes_min = min;
  waiting.nodes_max = max;
  waiting.left = left;
  return waiting;
}

RendezvousConfig at_gpu_01() {
  RendezvousConfig config;
  config.coordinator = {"gpu-01", 29400};
  return config;
}

/// A node that is fed with events, and what it says at a time after its start.
struct Node {
  RendezvousConfig config = at_gpu_01();
  RendezvousWait wait{config, kStart};
  bool joined = false;

  std::string after(const client::Event& event, Duration at) {
    const std::optional<Wait>& now = wait.after(event, joined, kStart + at);
    return now ? wait_text(*now, kStart + at) : "";
  }
  std::string after(const protocol::Waiting& waiting, Duration at) {
    return after(client::Incoming{1, waiting}, at);
  }
};

}  // namespace

TEST_CASE("until a coordinator has answered, it is waited for since the start") {
  Node node;
  CHECK(node.after(client::LinkDown{1, "refused"}, 2s) == kForCoordinator + "2 s of 10 min");
  CHECK(node.after(client::LinkDown{2, "refused"}, 9s) == kForCoordinator + "9 s of 10 min");
}

TEST_CASE("a coordinator that was lost is waited for since then") {
  Node node;
  node.joined = true;
  CHECK(node.after(client::LinkDown{1, "reset"}, 50s) == kForCoordinator + "0 s of 1 min");
}

TEST_CASE("missing nodes are counted from the first message about them") {
  Node node;
  CHECK(node.after(waiting_for(1, 2, 2, 600s), 1s) == "waiting for 1 of 2 nodes, 0 s of 10 min");
  CHECK(node.after(waiting_for(1, 2, 2, 588s), 13s) == "waiting for 1 of 2 nodes, 12 s of 10 min");
}

TEST_CASE("enough nodes start a round after the last call, which has to be announced") {
  Node node;
  CHECK(node.after(waiting_for(2, 2, 4, 600s), 1s).empty());
  protocol::Waiting call = waiting_for(2, 2, 4, 30s);
  call.then = protocol::WaitEnd::kRoundStarts;
  CHECK(node.after(call, 2s) == "2 nodes of at most 4 joined, starting in 30 s");
}

TEST_CASE("a node beyond the maximum waits as a spare") {
  Node node;
  CHECK(node.after(waiting_for(3, 2, 2, 0s), 1s) == "waiting as a spare node, 0 s");
}

TEST_CASE("after a round the next wait begins from zero") {
  Node node;
  static_cast<void>(node.after(waiting_for(1, 2, 2, 600s), 1s));
  node.wait.end();
  CHECK(node.after(client::LinkUp{2}, 90s).empty());
  CHECK(node.after(waiting_for(1, 2, 2, 600s), 100s) == "waiting for 1 of 2 nodes, 0 s of 10 min");
}
