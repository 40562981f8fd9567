// What RoundWatch finds out of samples: ranks that hang, and ranks that ask the user.
#include "agent/watch/rank_watches.hpp"
#include "agent/watch/watch_lines.hpp"

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
  CloseLook close{};

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

/// Two ranks, asked at every tick.
struct Asked {
  InputWatch watch;
  std::vector<InputRank> ranks{{LocalRank(0), kStart}, {LocalRank(1), kStart}};
  std::vector<bool> waits{false, false};  // by local rank
  TimePoint now = kStart;
  std::vector<InputWatch::Look> looks;

  Asked() { watch.begin(now); }
  InputWatch::News tick() {
    now = watch.next();
    looks = watch.due(ranks, now);
    std::vector<bool> found;
    for (const InputWatch::Look& look : looks) {
      found.push_back(waits.at(static_cast<std::size_t>(look.rank.value())));
    }
    return watch.found(looks, found, now);
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

TEST_CASE("one rank that reads, waits for pages or storage, or gets bytes, is progress of all") {
  Ranks ranks;
  const auto is_progress = [&ranks](auto change) {
    for (RankProgress& rank : ranks.ranks) rank.close = ranks.close;
    ranks.after(3);
    change(ranks.ranks[1]);
    return ranks.after(1) == 0s;
  };
  CHECK(is_progress([](RankProgress& rank) { rank.read += 256 * 10 + 1; }));
  CHECK(is_progress([](RankProgress& rank) { rank.storage += 512; }));
  CHECK(is_progress([](RankProgress& rank) { rank.faults += 101; }));
  CHECK(is_progress([](RankProgress& rank) { rank.waited_faults += 1; }));
  CHECK(is_progress([](RankProgress& rank) { rank.close->io_wait += 1; }));
  CHECK(is_progress([](RankProgress& rank) { rank.close->network += 256 * 10 + 1; }));
  CHECK_FALSE(is_progress([](RankProgress&) {}));
}

TEST_CASE("a rank that waits for the user, at a prompt or in a debugger, is never a hang") {
  Ranks ranks;
  ranks.ranks[1].close = CloseLook{.for_user = true};
  CHECK(ranks.after(40) == 0s);
  CHECK(ranks.watch.look(ranks.ranks, ranks.now + 1ms) == 0s);
  ranks.ranks[1].close->for_user = false;
  CHECK(ranks.after(4) == 40s);
}

TEST_CASE("ranks whose output ddprun does not take are not found to hang") {
  Ranks ranks;
  ranks.ranks[0].held = true;
  CHECK(ranks.after(40) == 0s);
}

TEST_CASE("threads are looked at only where the last sample showed no progress") {
  Ranks ranks;
  CHECK_FALSE(ranks.watch.is_quiet());
  ranks.after(1);
  CHECK(ranks.watch.is_quiet());
  ranks.ranks[0].close = CloseLook{.io_wait = 17, .network = 100'000};
  CHECK(ranks.after(1) == 20s);  // what was not looked at before is no progress
  ranks.ranks[0].cpu += 1s;
  ranks.ranks[0].close.reset();
  ranks.after(1);
  CHECK_FALSE(ranks.watch.is_quiet());
}

TEST_CASE("a few bytes that threads send each other are no progress") {
  Ranks ranks;
  for (RankProgress& rank : ranks.ranks) rank.close.emplace();
  for (int sample = 0; sample < 4; ++sample) {
    ranks.ranks[0].read += 256 * 10;
    ranks.ranks[0].faults += 100;
    ranks.ranks[1].close->network += 256 * 10;
    ranks.after(1);
  }
  CHECK(ranks.after(1) == 50s);
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

TEST_CASE("a rank that waits for input is found at the next tick, and told once") {
  Asked asked;
  asked.waits[1] = true;
  const InputWatch::News news = asked.tick();
  CHECK(asked.now == kStart + kInputTick);
  CHECK(news.began == std::vector{LocalRank(1)});
  CHECK(news.waiting == std::vector{LocalRank(1)});
  asked.ranks[1].written = asked.now;  // it answers, and asks again
  CHECK(asked.tick().began.empty());
  asked.waits[0] = true;
  asked.ranks[0].written = asked.now;
  const InputWatch::News both = asked.tick();
  CHECK(both.began == std::vector{LocalRank(0)});
  CHECK(both.waiting == std::vector{LocalRank(0), LocalRank(1)});
}

TEST_CASE("a rank that has not waited for ten seconds has continued, and is told again") {
  Asked asked;
  asked.waits[1] = true;
  (void)asked.tick();
  asked.waits[1] = false;
  std::vector<LocalRank> over;
  while (over.empty() && asked.now < kStart + 60s) over = asked.tick().over;
  CHECK(over == std::vector{LocalRank(1)});
  CHECK(asked.now == kStart + 1s + kInputForgotten);
  asked.waits[1] = true;
  asked.ranks[1].written = asked.now;
  CHECK(asked.tick().began == std::vector{LocalRank(1)});
}

TEST_CASE("a silent rank is looked at less and less often, then at all its threads") {
  Asked asked;
  asked.ranks.pop_back();
  std::vector<Duration> at;
  std::vector<bool> closely;
  while (asked.now < kStart + 60s) {
    (void)asked.tick();
    for (const InputWatch::Look& look : asked.looks) closely.push_back(look.closely);
    if (!asked.looks.empty()) at.push_back(asked.now - kStart);
  }
  REQUIRE(at.size() > 4);
  CHECK(std::vector(at.begin(), at.begin() + 4) == std::vector<Duration>{1s, 2s, 4s, 8s});
  CHECK(at.back() - at[at.size() - 2] == kInputLookMax);
  CHECK_FALSE(closely.front());
  CHECK(closely.back());
}

TEST_CASE("a rank that writes is not looked at before it has been silent") {
  Asked asked;
  for (int tick = 0; tick < 5; ++tick) {
    for (InputRank& rank : asked.ranks) rank.written = asked.watch.next() - 100ms;
    (void)asked.tick();
    CHECK(asked.looks.empty());
  }
}

TEST_CASE("a rank that has ended is forgotten") {
  Asked asked;
  asked.waits[1] = true;
  (void)asked.tick();
  asked.ranks.pop_back();
  CHECK(asked.tick().waiting.empty());
}

TEST_CASE("the note names who waits, who gets a line, and whose stdout is shown") {
  CHECK(input_text({Rank(1)}, {Rank(1)}).ends_with("; stdout of rank 1 is shown meanwhile"));
  CHECK(input_text({Rank(0), Rank(1)}, {}).starts_with("ranks 0, 1 wait for "));
}
