// The links of two rounds: the test is the worker that survives the first one.
#include "agent/workers/round_links.hpp"

#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <variant>

#include "tests/support/server_thread.hpp"
#include "worker_api/worker.hpp"

using namespace ddprun;
using namespace std::chrono_literals;

namespace {

constexpr LocalRank kFirst{0};
constexpr LocalRank kSecond{1};

struct LinkedTestRound {
  LinkedTestRound(int number, const std::shared_ptr<WorkerLinks>& links)
      : events({}, [](const std::string&) {}),
        round(
            facts, events, links,
            [this](LocalRank rank, const worker_link::Report& report) {
              if (!std::holds_alternative<worker_link::OpenSection>(report)) return;
              exceeded_in = rank;
              ++exceeded;
            },
            [](LocalRank, const WorkerTimer&) {}) {
    facts.round = Round(number);
    facts.nonce = "test";
  }
  RoundFacts facts;
  EventLog events;
  std::atomic<int> exceeded{0};
  LocalRank exceeded_in{-1};  // of the server's thread
  RoundLinks round;
};

template <class Condition>
void wait_for(Condition holds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kHung_ms);
  while (!holds()) {
    REQUIRE(std::chrono::steady_clock::now() < deadline);
    std::this_thread::yield();
  }
}

}  // namespace

// One case, because a process connects once.
TEST_CASE("a section that is exceeded counts when all ranks run, and in the round of its worker") {
  ServerThread thread;
  const auto links = std::make_shared<WorkerLinks>();
  const std::string path = links->open(thread.executor(), "test", LaunchConfig(), *thread.logger());
  REQUIRE_FALSE(path.empty());
  ::setenv("DDPRUN_WORKER_SOCKET", path.c_str(), 1);
  auto first = std::make_unique<LinkedTestRound>(1, links);
  first->round.started(kFirst, ::getpid());
  thread.start();

  const Section section("step", 5ms);
  REQUIRE(section.watched());
  REQUIRE(step_done(41) == 0);
  const auto late = std::chrono::steady_clock::now() + 30ms;
  wait_for([&] { return std::chrono::steady_clock::now() > late; });
  thread.run([&] {
    CHECK(first->exceeded == 0);
    first->round.running();
    CHECK(first->exceeded == 1);
    first->round.running();
  });

  LinkedTestRound second(2, links);
  thread.run([&] {
    const auto number = first->round.release(kFirst);
    REQUIRE(number);
    first->round.close();
    second.round.adopt(kSecond, *number);
    CHECK(second.exceeded == 0);
    second.round.running();
    CHECK(second.exceeded == 1);
    CHECK(second.exceeded_in == kSecond);
    CHECK(second.round.last_step(kSecond)->step == 41);
    CHECK_FALSE(first->round.last_step(kFirst));
    first.reset();
  });
  CHECK(connected());
  thread.run([&] { second.round.close(); });
  wait_for([] { return !connected(); });
  thread.run([&] { links->close(); });
  ::unsetenv("DDPRUN_WORKER_SOCKET");
}
