#include "agent/watch/rank_watches.hpp"

#include "agent/report/lines.hpp"
#include "agent/watch/watch_lines.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;
using namespace std::chrono_literals;

namespace {

const TimePoint kStart{1000s};

WorkerState worker(int rank, char state) {
  return {{Rank(rank), LocalRank(rank), 900 + rank, "gpu-01"}, state};
}

/// Ranks 0 and 1 and a limit of 2 s: a look every 500 ms.
struct Looks {
  SleepWatch watch{2s};
  TimePoint now = kStart;

  Looks() { watch.begin(now); }
  std::vector<Sleeper> look(char first, char second) {
    now = watch.next();
    return watch.look({worker(0, first), worker(1, second)}, now);
  }
};

}  // namespace

TEST_CASE("a worker that is in state D at every look is found at the limit") {
  Looks looks;
  for (int i = 0; i < 4; ++i) CHECK(looks.look('S', 'D').empty());
  const auto found = looks.look('S', 'D');
  REQUIRE(found.size() == 1);
  CHECK(found.front().worker == worker(1, 'D').worker);
  CHECK(found.front().lasts == 2s);
}

TEST_CASE("a worker that leaves state D begins again") {
  Looks looks;
  for (int i = 0; i < 4; ++i) CHECK(looks.look('D', 'D').empty());
  const auto found = looks.look('R', 'D');
  REQUIRE(found.size() == 1);
  CHECK(found.front().worker.rank == Rank(1));
  for (int i = 0; i < 4; ++i) CHECK(looks.look('D', 'S').empty());
  CHECK(looks.look('D', 'S').size() == 1);
}

TEST_CASE("states other than D are never found") {
  Looks looks;
  for (int i = 0; i < 100; ++i) CHECK(looks.look('S', i % 2 == 0 ? 'T' : '?').empty());
}

TEST_CASE("a look that comes late counts no time before it") {
  Looks looks;
  for (int i = 0; i < 4; ++i) CHECK(looks.look('D', 'S').empty());
  looks.now += 1h;
  CHECK(looks.watch.look({worker(0, 'D')}, looks.now).empty());
  for (int i = 0; i < 3; ++i) CHECK(looks.look('D', 'S').empty());
  CHECK(looks.look('D', 'S').size() == 1);
}

TEST_CASE("one look is not enough, however short the limit") {
  SleepWatch watch(1ns);
  watch.begin(kStart);
  CHECK(watch.next() == kStart + kSleepLookMin);
  CHECK(watch.look({worker(0, 'D')}, watch.next()).empty());
  CHECK(watch.look({worker(0, 'D')}, watch.next()).size() == 1);
  SleepWatch hour(1h);
  hour.begin(kStart);
  CHECK(hour.next() == kStart + kSleepLookMax);
}

TEST_CASE("ranks in state D are told with pid, time and wait channel") {
  const std::string sleeps = test::kInSleep + "2 s (TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT)";
  const Sleeper sleeper{worker(1, 'D').worker, 2s, "nfs_wait\nddprun: done"};
  WorkerExit exit;
  exit.given_up = sleep_finding({sleeper}, {});
  CHECK(death_line(exit, 3) ==
        "ddprun: warning [SLEEP] rank 1 (local 1, pid 901) on gpu-01 has" + sleeps +
            "; stopping 3 ranks\n"
            "  evidence  rank 1 (local 1, pid 901) on gpu-01: state D in nfs_wait\\nddprun: done "
            "for 2 s");
  CHECK(exit.given_up->ranks == std::vector<int>{1});
  CHECK_FALSE(exit.given_up->no_restart.empty());

  std::vector<Sleeper> many(100, sleeper);
  for (int rank = 0; rank < 100; ++rank)
    many[static_cast<std::size_t>(rank)].worker.rank = Rank(rank);
  const Finding finding = sleep_finding(many, {});
  CHECK(finding.text == "ranks 0-99 have" + sleeps);
  CHECK(finding.ranks.size() == kFindingRanksMax);
  CHECK(finding.evidence.size() <= kFindingLinesMax);
}
