// A ddprun-rdzvd that is one of several for a run: docs/FAILOVER.md.
#include "tests/coordinator/live.hpp"

using namespace ddprun;
using namespace ddprun::coordinator;
using namespace ddprun::protocol;

namespace {

const RunId kRun("run");

Hello member_of(const std::string& agent, int nodes) {
  Hello hello = hello_of("run", agent, nodes);
  hello.terms.endpoints = "a:4711,b:4712";
  return hello;
}

Lead lead_to(const std::string& host, std::uint16_t port, int round = 4) {
  return {kRun, Round(round), port, host, "the first"};
}

Hello claiming(const std::string& agent, int group_rank, int size) {
  Hello hello = member_of(agent, size);
  hello.terms.keep_alive_interval = Milliseconds(400);
  auto& claim = hello.claim.emplace();
  claim.stamp = {Round(3), "elsewhere"};
  claim.group_rank = group_rank;
  claim.group_size = size;
  claim.state = NodeState::kRunning;
  claim.succession.has_vote = true;
  claim.succession.origin = "the first";
  return hello;
}

}  // namespace

TEST_CASE("a daemon without a round of the run sends its agents to the endpoint that leads") {
  LiveCoordinator daemon;
  Agent early(daemon.port(), member_of("a", 2));
  early.await<Waiting>();
  Agent guest(daemon.port(), hello_of("another", "g", 2));
  guest.await<Waiting>();
  {
    Agent leader(daemon.port());
    leader.say(lead_to("b", 4712));
    leader.await<Beat>();
    CHECK(early.await<Moved>() == Moved{"b", 4712});
    CHECK(early.closed());
    Agent late(daemon.port(), member_of("c", 2));
    CHECK(late.await<Moved>() == Moved{"b", 4712});
    guest.say(Beat{});
    guest.await<Beat>();  // its run is another one
    Agent second(daemon.port());
    second.say(lead_to("a", 4711, 9));
    second.await<Refused>();
    leader.say(lead_to("b", 4712, 5));
    leader.await<Beat>();
  }
  Agent again(daemon.port());
  CHECK(eventually([&] {
    Agent next(daemon.port(), member_of("d", 2));
    return std::holds_alternative<Waiting>(next.next());
  }));
}

TEST_CASE("a lead to a place that the run of a node does not name is no reason to send it there") {
  LiveCoordinator daemon;
  Agent stranger(daemon.port());
  const auto lead = [&] {
    stranger.say(lead_to("x", 4712));
    stranger.await<Beat>();
  };
  lead();
  Agent alone(daemon.port(), hello_of("run", "a", 2));  // its run has one endpoint
  alone.await<Waiting>();
  stranger.say(lead_to("x", 4712));
  stranger.await<Refused>();
  LiveCoordinator other;
  Agent second(other.port());
  second.say(lead_to("x", 4712));
  second.await<Beat>();
  Agent several(other.port(), member_of("a", 2));
  several.await<Waiting>();
}

TEST_CASE("of two daemons with a run each, which began apart, one yields") {
  for (const bool is_lower : {true, false}) {
    LiveCoordinator daemon;
    Hello hello = member_of("a", 1);
    hello.terms.nodes_max = 2;
    Agent member(daemon.port(), hello);
    hello.agent = AgentId("second");
    Agent second(daemon.port(), hello);
    const auto round = member.start_round();
    Agent other(daemon.port());
    Lead lead = lead_to("b", 4712, round.stamp.number.value());
    lead.origin = is_lower ? "!" : "~";
    other.say(lead);
    if (is_lower) {
      other.await<Refused>();
      continue;
    }
    other.await<Beat>();
    CHECK(member.await<Moved>() == Moved{"b", 4712});
  }
}

TEST_CASE("a lead may come before any agent of its run") {
  LiveCoordinator daemon;
  Agent leader(daemon.port());
  leader.say(lead_to("b", 4712));
  leader.await<Beat>();
  Agent late(daemon.port(), member_of("a", 2));
  CHECK(late.await<Moved>() == Moved{"b", 4712});
}

TEST_CASE("a daemon that decides for the run, or a place that is no endpoint, changes nothing") {
  LiveCoordinator daemon;
  Agent member(daemon.port(), member_of("a", 1));
  const auto round = member.start_round();
  for (const Lead& lead : {lead_to("b", 4712, round.stamp.number.value()), lead_to("x", 4712, 9),
                           Lead{kRun, Round(9), 4712}}) {
    Agent stranger(daemon.port());
    stranger.say(lead);
    stranger.await<Refused>();
    CHECK(stranger.closed());
  }
  member.say(Beat{});
  member.await<Beat>();
}

TEST_CASE("a daemon to which no majority comes lets its agents look elsewhere, and forgets them") {
  LiveCoordinator daemon;
  Agent half(daemon.port(), claiming("a", 0, 2));
  CHECK(half.closed());
  Agent first(daemon.port(), claiming("a", 0, 2));
  Agent second(daemon.port(), claiming("b", 1, 2));
  first.say(Beat{});
  first.await<Beat>();
  CHECK(eventually([&] { return daemon.log().find("the round continues") != std::string::npos; }));
}

TEST_CASE("members that have lost the coordinator that leads may be a majority elsewhere") {
  LiveCoordinator daemon;
  Agent leader(daemon.port());
  const auto lead = [&] {
    leader.say(lead_to("b", 4712));
    leader.await<Beat>();
  };
  lead();
  {
    Agent first(daemon.port(), claiming("a", 0, 3));
    first.say(Beat{});
    first.await<Beat>();
    lead();  // by a member that has not lost it yet
    CHECK(first.closed());
  }
  lead();
  Agent late(daemon.port(), member_of("c", 3));
  CHECK(late.await<Moved>() == Moved{"b", 4712});
  const auto of_two = [](const std::string& name, int group_rank) {
    Hello hello = claiming(name, group_rank, 3);
    hello.terms.nodes_min = 2;  // fewer would wait for the third
    return hello;
  };
  Agent first(daemon.port(), of_two("a", 0));
  Agent second(daemon.port(), of_two("b", 1));
  lead();
  const auto round = first.start_round();
  CHECK(round.group_size == 2);
  second.start_round();
  leader.say(lead_to("b", 4712, 3));
  leader.await<Refused>();
}
