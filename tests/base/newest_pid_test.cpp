#include "base/newest_pid.hpp"

#include <sys/types.h>

#include <vector>

#include "tests/support/catch.hpp"

using ddprun::NewPids;

namespace {

std::vector<pid_t> given;  // what newest() returns, one after the other; the last one again

pid_t newest() {
  const pid_t pid = given.front();
  if (given.size() > 1) given.erase(given.begin());
  return pid;
}

}  // namespace

TEST_CASE("new pids are followed from the newest one on, which is met again") {
  given = {1000, 1002, 1003};
  NewPids forked(newest);
  std::vector<pid_t> met;
  forked.follow([&](pid_t pid) {
    met.push_back(pid);
    return pid < 1003;
  });
  CHECK(met == std::vector<pid_t>{1000, 1001, 1002, 1002, 1003, 1003});
}

TEST_CASE("new pids are followed when they start again at a low number") {
  given = {32700, 500, 501};
  NewPids forked(newest);
  std::vector<pid_t> met;
  forked.follow([&](pid_t pid) {
    met.push_back(pid);
    return pid == 500;
  });
  CHECK(met.front() == 400);
  CHECK(std::vector<pid_t>(met.end() - 3, met.end()) == std::vector<pid_t>{500, 501, 501});
}

TEST_CASE("new pids are followed for a bounded time") {
  given = {7};
  NewPids forked(newest);
  int visits = 0;
  forked.follow([&](pid_t) { return ++visits > 0; });
  CHECK(visits == 2000);
  given = {0};
  forked.follow([&](pid_t) { return ++visits > 0; });
  CHECK(visits == 2000);
}

TEST_CASE("the newest pid is known") {
  CHECK(ddprun::newest_pid() > 0);
}
