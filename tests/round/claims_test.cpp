// How many agents are in which round, whatever happens to them.
#include "rendezvous/round/claims.hpp"

#include "rendezvous/round/roster.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::round;
using protocol::NodeState;

namespace {

/// A roster of agents that each claim a round of three.
class Here {
 public:
  Agent& come(int which, int round, const std::string& author = "c1") {
    protocol::Hello hello;
    hello.agent = AgentId("id-" + std::to_string(which));
    Agent& agent = roster.add(hello, LinkId(static_cast<std::uint64_t>(which) + 1), {}, now);
    claim(agent, round, author);
    return agent;
  }
  void claim(Agent& agent, int round, const std::string& author) {
    agent.last = {Round(round), author};
    agent.placement.group_size = 3;
    agent.succession = {2, true, true, true};
    roster.recount(agent);
  }
  [[nodiscard]] int here(int round, const std::string& author = "c1") const {
    const auto found = roster.claims().rounds().find({-round, author});
    return found == roster.claims().rounds().end() ? 0 : found->second.here;
  }

  TimePoint now{};
  Roster roster;
};

}  // namespace

TEST_CASE("an agent counts for the round that it claimed last, while it has a link") {
  Here all;
  Agent& one = all.come(0, 4);
  Agent& other = all.come(1, 4);
  all.come(2, 4, "c2");
  CHECK(all.here(4) == 2);
  CHECK(all.here(4, "c2") == 1);
  all.claim(one, 5, "c1");
  CHECK(all.here(4) == 1);
  CHECK(all.roster.claims().rounds().begin()->second.stamp.number == Round(5));
  all.roster.unlink(other);
  CHECK(all.here(4) == 0);
  all.roster.relink(other, LinkId(9), {});
  CHECK(all.here(4) == 1);
  all.roster.remove(other);
  all.roster.remove(one);
  CHECK(all.roster.claims().rounds().size() == 1);
}

TEST_CASE("a failure that counts is waited for until its report is here") {
  Here all;
  Agent& one = all.come(0, 4);
  one.failed_heard = true;
  all.roster.set_state(one, NodeState::kFailed);
  CHECK(all.roster.claims().rounds().begin()->second.failures_to_come == 1);
  one.failure.emplace();
  all.roster.recount(one);
  CHECK(all.roster.claims().rounds().begin()->second.failures_to_come == 0);
}

TEST_CASE("a round far beyond those that most agents have heard of is not believed") {
  Here all;
  const auto known = [&all](int without = 0) {
    return all.roster.claims().highest_near_half(all.roster.size() + without, 100);
  };
  CHECK(known() == Round(0));
  all.come(0, 900);
  CHECK(known() == Round(900));
  CHECK(known(1) == Round(0));  // the other one has heard of none
  all.come(1, 7);
  CHECK(known() == Round(7));
  all.come(2, 8);
  CHECK(known() == Round(8));
  CHECK(known(4) == Round(8));
}
