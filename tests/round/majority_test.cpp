// Who can decide what follows a settled round.
#include "rendezvous/round/authority.hpp"

#include <deque>

#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::round;

namespace {

const protocol::RoundStamp kRound{Round(3), "c1"};

/// The members of one round.
class Members {
 public:
  explicit Members(int count) {
    for (int i = 0; i < count; ++i) {
      Agent& agent = agents_.emplace_back();
      agent.hello.agent = id(i);
      all_.push_back(&agent);
    }
  }
  static AgentId id(int which) { return AgentId("id-" + std::to_string(which)); }
  [[nodiscard]] const std::vector<Agent*>& all() const { return all_; }

 private:
  std::deque<Agent> agents_;
  std::vector<Agent*> all_;
};

Majority settled(int count) {
  Majority majority;
  const Members members(count);
  majority.settle({kRound, members.all()});
  return majority;
}

Majority of_candidate(int size, int here, bool author_ended) {
  Majority majority;
  const Members members(here);
  majority.settle(
      {kRound, members.all(), size - here, author_ended ? 1 : 0, Majority::By::kCandidate});
  return majority;
}

}  // namespace

TEST_CASE("before the first round nothing is needed, and every node has a vote") {
  const Majority majority;
  CHECK(majority.needed() == 0);
  CHECK(majority.is_here());
  CHECK(majority.has_vote(Members::id(7)));
}

TEST_CASE("a coordinator that loses others to silence needs more than half of the round") {
  Majority majority = settled(5);
  majority.lose(Members::id(1), Majority::Loss::kSilent);
  majority.lose(Members::id(2), Majority::Loss::kSilent);
  CHECK(majority.is_here());
  majority.lose(Members::id(3), Majority::Loss::kSilent);
  CHECK(!majority.is_here());
  majority.take_claim(Members::id(3), kRound, "c1");
  CHECK(majority.is_here());
}

TEST_CASE("members whose processes have ended do not count, however many they are") {
  Majority majority = settled(5);
  for (int i = 1; i < 5; ++i) majority.lose(Members::id(i), Majority::Loss::kEnded);
  CHECK(majority.here() == 1);
  CHECK(majority.is_here());
}

TEST_CASE("one of two continues without the other only where the coordinator is") {
  Majority own = settled(2);
  own.lose(Members::id(1), Majority::Loss::kSilent);
  CHECK(own.is_here());
  CHECK(!of_candidate(2, 1, false).is_here());
  CHECK(of_candidate(2, 1, true).is_here());
}

TEST_CASE("what follows a tie of two is settled by both, unless one has ended") {
  Majority majority = settled(2);
  majority.lose(Members::id(1), Majority::Loss::kSilent);
  CHECK(majority.needed() == 1);
  CHECK(majority.needed_to_settle() == 2);
  Majority ended = settled(3);
  ended.lose(Members::id(1), Majority::Loss::kEnded);
  ended.lose(Members::id(2), Majority::Loss::kSilent);
  CHECK(ended.needed() == 1);
  CHECK(ended.needed_to_settle() == 1);
}

// Its vote on the settled round is used: that a later round here takes it in does not undo it.
TEST_CASE("who comes back with the round of another coordinator has no vote any more") {
  Majority majority = settled(3);
  majority.take_claim(Members::id(1), {Round(4), "c2"}, "c1");
  CHECK(!majority.has_vote(Members::id(1)));
  CHECK(majority.here() == 2);
  majority.lose(Members::id(1), Majority::Loss::kEnded);
  CHECK(majority.needed() == 2);
  majority.take_claim(Members::id(1), {Round(5), "c1"}, "c1");
  CHECK(!majority.has_vote(Members::id(1)));
  majority.take_claim(Members::id(1), kRound, "c1");
  CHECK(majority.here() == 2);
}

TEST_CASE("after a round that may not be settled only its voters count, and no other joins them") {
  Members members(2);
  Majority majority;
  majority.settle({kRound, members.all(), 3, 1, Majority::By::kCandidate, 3});
  CHECK(majority.is_of_unsettled());
  CHECK(majority.needed_to_settle() == 3);
  majority.take_claim(AgentId("late"), kRound, "c2");
  CHECK(majority.here() == 2);
  CHECK(!majority.is_here());
}

TEST_CASE("no two halves of a round are both a majority, whatever a candidate knows") {
  for (int size = 2; size <= 9; ++size) {
    for (int here = 0; here <= size; ++here) {
      const int others = size - here;
      const bool silent = of_candidate(size, here, false).is_here();
      CHECK(!(silent && of_candidate(size, others, false).is_here()));
      // The author has ended: it is on no side.
      const bool ended = here < size && of_candidate(size, here, true).is_here();
      const int rest = size - 1 - here;
      CHECK(!(ended && rest >= 0 && of_candidate(size, rest, true).is_here()));
      // What the author had settled without them before it ended, with itself.
      Majority author = settled(size);
      for (int i = 0; i < here; ++i) author.lose(Members::id(i), Majority::Loss::kSilent);
      CHECK(!(silent && author.is_here()));
      if (size > 2) CHECK(!(ended && author.is_here()));
    }
  }
}

TEST_CASE("a member that was absent counts when it claims the round, and a stranger never") {
  Majority majority = of_candidate(5, 2, false);
  CHECK(!majority.is_here());
  majority.take_claim(AgentId("late"), {Round(3), "c9"}, "c2");
  CHECK(!majority.is_here());
  majority.take_claim(AgentId("late"), kRound, "c2");
  CHECK(majority.is_here());
  for (const char* one : {"x", "y", "z"}) majority.take_claim(AgentId(one), kRound, "c2");
  CHECK(majority.here() == 5);
}

TEST_CASE("what was lost twice is counted once") {
  Majority majority = settled(4);
  majority.lose(Members::id(3), Majority::Loss::kEnded);
  majority.lose(Members::id(3), Majority::Loss::kSilent);
  CHECK(majority.here() == 3);
  CHECK(majority.needed() == 2);
  majority.take_claim(Members::id(3), kRound, "c1");
  CHECK(majority.needed() == 3);
}
