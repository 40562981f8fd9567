#include "agent/watch/rank_watches.hpp"

#include "agent/report/lines.hpp"
#include "agent/watch/watch_lines.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace std::chrono_literals;
using Due = EarlyFinish::Due;

namespace {

const TimePoint kExit{1000s};

EarlyFinish one_of_eight(std::optional<Duration> timeout = std::nullopt) {
  EarlyFinish early(timeout);
  early.update(1, 7, kExit);
  return early;
}

PartialFacts partial(const std::vector<int>& finished, const std::vector<int>& running) {
  PartialFacts facts;
  for (const int rank : finished) facts.finished.emplace_back(rank);
  for (const int rank : running) {
    facts.running.push_back({Rank(rank), LocalRank(rank), 900 + rank, "gpu-01"});
  }
  facts.lasts = 5s;
  return facts;
}

}  // namespace

TEST_CASE("a rank that exits 0 while others continue is told twice, and then no more") {
  EarlyFinish early = one_of_eight();
  CHECK(*early.next() == kExit + kFirstPartialNote);
  CHECK(early.take(kExit + kFirstPartialNote - 1ms) == Due::kNothing);
  CHECK(early.take(kExit + kFirstPartialNote) == Due::kFirstNote);
  early.update(3, 5, kExit + 30s);  // more of them do not begin it again
  CHECK(*early.next() == kExit + kSecondPartialNote);
  CHECK(early.take(kExit + kSecondPartialNote) == Due::kSecondNote);
  CHECK_FALSE(early.next());
  early.update(4, 4, kExit + 24h);
  CHECK_FALSE(early.next());
}

TEST_CASE("ranks that finish within seconds of each other are not told") {
  EarlyFinish early = one_of_eight();
  early.update(8, 0, kExit + 4s);
  CHECK_FALSE(early.next());
  EarlyFinish none(std::nullopt);
  none.update(0, 8, kExit);
  CHECK_FALSE(none.next());
}

TEST_CASE("the finish timeout counts from the first exit, after the notes that come before it") {
  EarlyFinish early = one_of_eight(20s);
  CHECK(early.take(kExit + 5s) == Due::kFirstNote);
  CHECK(*early.left(kExit + 5s) == 15s);
  CHECK(*early.next() == kExit + 20s);
  CHECK(early.take(kExit + 20s) == Due::kGiveUp);
  CHECK_FALSE(early.next());
  EarlyFinish soon = one_of_eight(2s);
  CHECK(soon.take(kExit + 2s) == Due::kGiveUp);
}

TEST_CASE("the first note about early finishers is one line with both sides") {
  CHECK(first_partial_line(partial({0, 1, 2, 4, 5, 7}, {3, 6})) ==
        "ddprun: note [PARTIAL] ranks 0-2, 4, 5, 7 exited with code 0 5 s ago; "
        "ranks 3, 6 still run");
  CHECK(first_partial_line(partial({0}, {1})) ==
        "ddprun: note [PARTIAL] rank 0 exited with code 0 5 s ago; "
        "rank 1 (local 1, pid 901) on gpu-01 still runs");
}

TEST_CASE("the second note about early finishers says what the others do, and what follows") {
  PartialFacts facts = partial({0}, {1});
  facts.lasts = 60s;
  const std::vector<StackGroup> groups{{"sleeping in futex_wait (state S)", {1}}};
  CHECK(second_partial_line(facts, groups) ==
        "ddprun: warning [PARTIAL] rank 0 exited with code 0 1 min ago; "
        "rank 1 (local 1, pid 901) on gpu-01 still runs\n"
        "  evidence  1 rank: sleeping in futex_wait (state S)\n"
        "  likely    ranks took a different number of steps, or one called exit(0) early\n"
        "  next      waiting without a limit (--finish-timeout sets one)");
  facts.left = 29min;
  CHECK_THAT(second_partial_line(facts, groups),
             ContainsSubstring("waiting up to 29 min more (--finish-timeout), then"));
}

TEST_CASE(
    "a round that is given up is told with the places of its ranks, the odd ones in question") {
  StackDump dump;
  for (int rank = 0; rank < 3; ++rank) {
    ProcessStacks process;
    process.state = rank == 1 ? 'T' : 'S';
    process.missing = "it ended meanwhile";
    dump.ranks.push_back({{Rank(rank), LocalRank(rank), 900 + rank, "gpu-01"}, {process}});
  }
  WorkerExit exit;
  exit.given_up = hang_finding(10min, dump);
  exit.log = "/logs/stacks-600s.txt";
  CHECK(exit.given_up->ranks == std::vector<int>{1});
  CHECK(death_line(exit, 3) ==
        "ddprun: warning [HANG] no rank has used CPU time, read or written for 10 min "
        "(--hang-timeout); stopping 3 ranks\n"
        "  evidence  1 rank: stopped (state T): 1; 2 ranks: sleeping (state S)\n"
        "  evidence  it ended meanwhile\n"
        "  log       /logs/stacks-600s.txt");
  for (int child = 1; child <= 5; ++child) {
    dump.ranks[2].ended.push_back({child, 902, "helper", ExitStatus::signaled(9)});
  }
  const std::vector<std::string> evidence = hang_finding(10min, dump).evidence;
  const Finding raised =
      hang_finding(10min, dump, {{dump.ranks[0].worker, "ValueError: bad shard"}});
  CHECK(raised.evidence[0] == evidence[0]);
  CHECK_THAT(raised.evidence[1], ContainsSubstring(" said last: ValueError: bad shard"));
  CHECK_THAT(raised.likely, ContainsSubstring("an exception that did not end its process"));
  REQUIRE(evidence.size() == 6);
  CHECK(evidence[1] == ended_children(dump).front());
  CHECK(evidence[4] == "2 more ended so");
  CHECK(evidence[5] == "it ended meanwhile");
  CHECK(finish_timeout_finding(partial({0}, {1, 2}), dump).text ==
        "rank 0 exited with code 0 5 s ago; ranks 1, 2 still run (--finish-timeout)");
}

TEST_CASE("a round that is given up is told with the last steps, of the rank behind or named") {
  const std::vector<WorkerName> running{{Rank(4)}, {Rank(5)}, {Rank(6)}};
  Finding finding;
  finding.evidence = {"3 ranks: sleeping (state S)", "no py-spy"};
  finding.places.emplace_back();
  Finding told = finding;
  add_steps(told, running, {11, 5, 12});
  CHECK(told.evidence == std::vector<std::string>{finding.evidence[0],
                                                  "rank 5 last finished step 5, others 11 to 12",
                                                  finding.evidence[1]});
  told.evidence.clear();
  told.ranks = {6};
  add_steps(told, running, {11, 5, 12});
  CHECK(told.evidence == std::vector<std::string>{"rank 6 last finished step 12, others 5 to 11"});
  told = finding;
  add_steps(told, running, {-1, -1, -1});
  add_steps(told, {}, {});
  CHECK(told.evidence == finding.evidence);
}

TEST_CASE("many ranks are named by ranges, at most eight") {
  std::vector<Rank> even;
  for (int rank = 0; rank < 64; rank += 2) even.emplace_back(rank);
  CHECK(ranks_text(even) == "ranks 0, 2, 4, 6, 8, 10, 12, 14, ...");
}
