// The turns of an event loop, and the wait between them that Asio's reactor makes.
#include "net/loop_turns.hpp"

#include <time.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <vector>

#include "tests/support/catch.hpp"

using namespace ddprun;
using ddprun::net::LoopTurn;
using ddprun::net::LoopTurns;
using std::chrono::milliseconds;

namespace {

/// Sets the clock that the turns read.
Duration& used() {
  static Duration used{};
  return used;
}

struct Loop {
  LoopTurns turns{+[] { return used(); }};
  TimePoint now{};
  std::vector<Duration> told{};

  Loop() {
    used() = {};
    turns.on_longer([this](const LoopTurn& turn) { told.push_back(turn.took); });
  }
  void turn(milliseconds took, milliseconds cpu) {
    turns.begin(now);
    now += took;
    used() += cpu;
    turns.end(now);
    now += milliseconds(100);  // a wait
  }
};

}  // namespace

TEST_CASE("the longest turn of an event loop is known, without the waits between") {
  Loop loop;
  loop.turn(milliseconds(3), milliseconds(1));
  loop.turn(milliseconds(2), milliseconds(2));
  CHECK(loop.turns.longest().took == milliseconds(3));
  CHECK(loop.turns.most_cpu() == milliseconds(0));
}

TEST_CASE("a turn in which others had the processor is told from one that used it") {
  Loop loop;
  loop.turn(milliseconds(300), milliseconds(5));
  loop.turn(milliseconds(90), milliseconds(80));
  CHECK(loop.turns.longest().took == milliseconds(300));
  CHECK(loop.turns.longest().cpu == milliseconds(5));
  CHECK(loop.turns.most_cpu() == milliseconds(80));
}

TEST_CASE("each turn that is long and longer than all before is told once, in the next one") {
  Loop loop;
  loop.turn(milliseconds(30), milliseconds(30));
  CHECK(loop.told.empty());
  loop.turn(milliseconds(1), milliseconds(1));
  loop.turn(milliseconds(25), milliseconds(25));
  loop.turn(milliseconds(40), milliseconds(40));
  loop.turn(milliseconds(1), milliseconds(1));
  CHECK(loop.told == std::vector<Duration>{milliseconds(30), milliseconds(40)});
}

TEST_CASE("a handler of Asio that takes long is a long turn, and a long wait is none") {
  LoopTurns& here = LoopTurns::here();
  boost::asio::io_context io;
  boost::asio::steady_timer quiet(io, milliseconds(60));
  quiet.async_wait([](const auto&) {});
  io.run();
  const Duration before = here.longest().took;
  const Duration cpu_before = here.most_cpu();
  boost::asio::steady_timer end(io, milliseconds(1));
  end.async_wait([&](const auto&) {
    const TimePoint until = Clock::now() + before + milliseconds(50);
    while (Clock::now() < until) continue;
  });
  io.restart();
  io.run();
  boost::asio::steady_timer after(io, milliseconds(1));  // the turn ends with the next wait
  after.async_wait([](const auto&) {});
  io.restart();
  io.run();
  CHECK(here.longest().took >= before + milliseconds(50));
  CHECK(here.most_cpu() > cpu_before);
}
