// --hang-timeout: only the coordinator knows whether the ranks of all nodes make no progress.
#include "rendezvous/round/hang_check.hpp"

#include "tests/round/desk.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::round;
using namespace ddprun::protocol;

namespace {

constexpr Milliseconds kLimit = seconds(10);

/// Nodes "a" and "b" on links 1 and 2 run a rank each.
struct Quietude : Desk {
  explicit Quietude(int max_restarts = 0, std::optional<Milliseconds> limit = kLimit)
      : Desk(max_restarts) {
    for (const std::uint64_t link : {1U, 2U}) {
      Hello hello = this->hello(link == 1 ? "a" : "b", 2, 2);
      hello.terms.hang_timeout = limit;
      say(link, hello);
    }
    both_run();
    forget();
  }
  void quiet(std::uint64_t link, Milliseconds lasts, std::optional<int> echo = {}) {
    say(link, Quiet{Round(1), lasts, echo});
  }
  /// Both are quiet and are asked.
  int ask() {
    quiet(1, kLimit);
    quiet(2, kLimit);
    const auto look = last<Hang>(1);
    REQUIRE(look.has_value());
    CHECK(last<Hang>(2) == look);
    forget();
    return look->echo.value_or(0);
  }
  [[nodiscard]] bool gives_up() {
    const auto order = last<Hang>(1);
    return order && !order->echo;
  }
  Report given_up(int rank, std::vector<StackGroup> places) {
    Report report = failed(1, 114);
    report.failure->worker.rank = Rank(rank);
    Finding why{"HANG", "no rank has written", {}, {groups_text(places), "no py-spy"}, "", ""};
    why.places = std::move(places);
    report.failure->given_up = std::move(why);
    return report;
  }
};

}  // namespace

TEST_CASE("nodes that are all quiet are asked once more, then all give up their ranks") {
  Quietude desk;
  desk.quiet(1, kLimit);
  CHECK_FALSE(desk.last<Hang>(1).has_value());  // the other one works
  const int question = desk.ask();
  CHECK(question > 0);
  desk.quiet(1, kLimit, question);
  CHECK_FALSE(desk.last<Hang>(1).has_value());
  desk.quiet(2, kLimit, question);
  CHECK(desk.gives_up());
  CHECK(desk.last<Hang>(2) == Hang{Round(1)});
}

TEST_CASE("a node whose ranks move before the second look ends the suspicion") {
  for (const bool as_answer : {true, false}) {
    Quietude desk;
    const int question = desk.ask();
    desk.quiet(1, kLimit, question);
    desk.quiet(2, Milliseconds(0), as_answer ? std::optional<int>(question) : std::nullopt);
    desk.quiet(2, kLimit);  // quiet again, but not since the question
    CHECK_FALSE(desk.gives_up());
    REQUIRE(desk.last<Hang>(1).has_value());  // another question
    CHECK(desk.last<Hang>(1)->echo != question);
    desk.quiet(2, kLimit, question);  // an answer to the old one
    desk.quiet(1, kLimit, question);
    CHECK_FALSE(desk.gives_up());
  }
}

TEST_CASE("an answer that took longer than its node was quiet is asked for again") {
  Quietude desk;
  const int first = desk.ask();
  desk.quiet(1, kLimit, first);
  desk.after(seconds(3));
  desk.quiet(2, kLimit, first);  // since one second after the question
  CHECK_FALSE(desk.gives_up());
  REQUIRE(desk.last<Hang>(1).has_value());
  const int second = desk.last<Hang>(1)->echo.value_or(0);
  CHECK(second > first);
  desk.quiet(1, kLimit + seconds(3), second);
  desk.quiet(2, kLimit, second);
  CHECK(desk.gives_up());
}

TEST_CASE("a node that comes back over another link has to say again that it is quiet") {
  Quietude desk;
  desk.quiet(2, kLimit);
  desk.say(2, Reconnecting{"no answer"});
  Hello again = desk.hello_again();
  again.terms.hang_timeout = kLimit;
  desk.say(3, again);
  desk.quiet(1, kLimit);
  CHECK_FALSE(desk.last<Hang>(1).has_value());
  desk.quiet(3, kLimit);
  CHECK(desk.last<Hang>(1).has_value());
}

TEST_CASE("a node that finishes is progress, and the limit begins again for the others") {
  for (const bool is_asked : {false, true}) {
    Quietude desk;
    const int question = is_asked ? desk.ask() : 0;
    desk.quiet(1, 2 * kLimit);
    desk.say(2, desk.report(1, NodeState::kSucceeded));
    if (is_asked) desk.quiet(1, 2 * kLimit, question);
    desk.beat_for(kLimit - seconds(1), {1, 2});
    desk.quiet(1, 3 * kLimit);
    CHECK_FALSE(desk.last<Hang>(1).has_value());
    desk.beat_for(seconds(1), {1, 2});
    desk.quiet(1, 3 * kLimit);  // the node that has finished is not waited for
    const auto look = desk.last<Hang>(1);
    REQUIRE(look.has_value());
    CHECK_FALSE(desk.last<Hang>(2).has_value());
    desk.forget();
    desk.quiet(1, 3 * kLimit, look->echo);
    CHECK(desk.gives_up());
  }
}

TEST_CASE("a node that still starts is waited for before ranks are given up") {
  Desk starting;
  for (const std::uint64_t link : {1U, 2U}) {
    Hello hello = starting.hello(link == 1 ? "a" : "b", 2, 2);
    hello.terms.hang_timeout = kLimit;
    starting.say(link, hello);
  }
  starting.say(1, starting.report(1, NodeState::kRunning));
  starting.say(1, Quiet{Round(1), kLimit});
  CHECK_FALSE(starting.last<Hang>(1).has_value());
}

TEST_CASE("a word of another round, or without --hang-timeout, is dropped and counted") {
  Quietude desk;
  desk.say(1, Quiet{Round(2), kLimit});
  CHECK(desk.run_.status(desk.now_).counters.stale == 1);
  Quietude off(0, std::nullopt);
  off.quiet(1, kLimit);
  off.quiet(2, kLimit);
  CHECK_FALSE(off.last<Hang>(1).has_value());
  CHECK(off.run_.status(off.now_).counters.stale == 2);
}

TEST_CASE("what all nodes give up is one failure, with the places of all ranks") {
  Quietude desk;
  const int question = desk.ask();
  desk.quiet(1, kLimit, question);
  desk.quiet(2, kLimit, question);
  desk.forget();
  desk.say(1, desk.given_up(0, {{"recv (net.py:2)", {0, 1}, 0}}));
  desk.say(1, Stopped{Round(1), milliseconds(3), 1, 2});
  CHECK_FALSE(desk.last<Stop>(2).has_value());  // it saves its stacks still
  desk.say(2, desk.given_up(2, {{"next (loader.py:1)", {2}, 0}, {"recv (net.py:2)", {3}, 0}}));
  REQUIRE(desk.last<Stop>(2).has_value());
  desk.say(2, Stopped{Round(1), milliseconds(5), 0, 2});
  const auto done = desk.last<Done>(1);
  REQUIRE(done.has_value());
  CHECK(done->exit_code == 114);
  CHECK(done->failure->first.worker.host == "b");
  CHECK(done->failure->stopped == 4);
  CHECK(done->failure->killed == 1);
  REQUIRE(done->failure->finding.has_value());
  const Finding& finding = *done->failure->finding;
  CHECK(finding.ranks == std::vector<int>{2});
  CHECK(finding.evidence ==
        std::vector<std::string>{"1 rank: next (loader.py:1): 2; 3 ranks: recv (net.py:2)",
                                 "no py-spy"});
  CHECK(finding.places.empty());
}

TEST_CASE("a node that does not give up its ranks is not waited for longer than ten seconds") {
  Quietude desk(1);
  const int question = desk.ask();
  desk.quiet(1, kLimit, question);
  desk.quiet(2, kLimit, question);
  desk.forget();
  desk.say(1, desk.given_up(0, {}));
  desk.beat_for(kGiveUpMax - seconds(1), {1, 2});
  CHECK_FALSE(desk.last<StartRound>(2).has_value());
  desk.beat_for(seconds(2), {1, 2});
  CHECK(desk.last<StartRound>(2)->restarts == RestartCount(1));
}

TEST_CASE("a node whose ranks are gone while others save their stacks ends no round alone") {
  Quietude desk(1);
  const int question = desk.ask();
  desk.quiet(1, kLimit, question);
  desk.quiet(2, kLimit, question);
  desk.forget();
  desk.say(1, desk.given_up(0, {}));
  desk.say(1, Stopped{Round(1), milliseconds(3), 0, 1});
  CHECK_FALSE(desk.last<StartRound>(2).has_value());
  desk.say(2, desk.given_up(2, {}));
  CHECK(desk.last<StartRound>(2)->restarts == RestartCount(1));
}

TEST_CASE("a rank that fails while the others are given up is the failure of the round") {
  Quietude desk;
  const int question = desk.ask();
  desk.quiet(1, kLimit, question);
  desk.quiet(2, kLimit, question);
  desk.say(1, desk.given_up(0, {}));
  desk.say(2, desk.failed(1, 9));
  CHECK(desk.last<Stop>(2).has_value());
  for (const std::uint64_t link : {1U, 2U}) desk.say(link, Stopped{Round(1), {}, 0, 1});
  CHECK(desk.last<Done>(1)->exit_code == 9);
}
