#include "agent/core/hang.hpp"

#include "agent/core/limits.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace std::chrono_literals;

namespace {

const TimePoint kStart{1000s};

/// Two ranks and a limit of 40 s: a sample every 10 s.
struct Ranks {
  HangWatch watch{40s};
  std::vector<RankProgress> ranks{{1s, 100, 7}, {1s, 100, 8}};
  TimePoint now = kStart;

  Ranks() {
    watch.begin(now);
    sample();
  }
  Duration sample() {
    now = watch.next();
    return watch.sample(ranks, now);
  }
  Duration after(int samples) {
    Duration quiet{};
    for (int i = 0; i < samples; ++i) quiet = sample();
    return quiet;
  }
};

}  // namespace

TEST_CASE("ranks that do nothing are quiet for as long as that lasts") {
  Ranks ranks;
  CHECK(ranks.after(1) == 10s);
  CHECK(ranks.after(3) == 40s);
}

TEST_CASE("one rank that computes, writes, starts a process or ends a step is progress of all") {
  Ranks ranks;
  CHECK(ranks.after(3) == 30s);
  ranks.ranks[1].cpu += 101ms;  // of 10 s
  CHECK(ranks.after(1) == 0s);
  ranks.ranks[0].written += 1;
  CHECK(ranks.after(1) == 0s);
  ranks.ranks[0].processes += 1;
  CHECK(ranks.after(1) == 0s);
  ranks.ranks[1].step = 0;
  CHECK(ranks.after(1) == 0s);
  CHECK(ranks.after(1) == 10s);
  ranks.ranks.pop_back();  // one has ended
  CHECK(ranks.after(1) == 0s);
}

TEST_CASE("threads that wake up now and then are no progress") {
  Ranks ranks;
  for (int sample = 0; sample < 4; ++sample) {
    ranks.ranks[0].cpu += 100ms;
    ranks.ranks[1].cpu += 50ms;
    ranks.after(1);
  }
  CHECK(ranks.after(1) == 50s);
}

TEST_CASE("a machine that was suspended does not find its ranks to hang") {
  Ranks ranks;
  CHECK(ranks.after(3) == 30s);
  ranks.now += 3600s;
  CHECK(ranks.watch.sample(ranks.ranks, ranks.now) == 0s);
  CHECK(ranks.after(4) == 40s);
}

TEST_CASE("samples are taken four times within the limit, and at least every 10 s") {
  HangWatch hour(1h);
  hour.begin(kStart);
  CHECK(hour.next() == kStart + kHangSampleMax);
  HangWatch second(1s);
  second.begin(kStart);
  CHECK(second.next() == kStart + 250ms);
}

TEST_CASE("a look between two samples neither replaces one nor counts a single tick") {
  Ranks ranks;
  (void)ranks.after(4);
  ranks.ranks[0].cpu += 10ms;
  CHECK(ranks.watch.look(ranks.ranks, ranks.now + 1ms) == 40s + 1ms);
  ranks.ranks[0].written += 1;
  CHECK(ranks.watch.look(ranks.ranks, ranks.now + 2ms) == 0s);
  ranks.ranks[0].written -= 1;
  CHECK(ranks.after(1) == 50s);
  CHECK(ranks.watch.look(ranks.ranks, ranks.now + 60s) == 0s);  // the machine was suspended
}
