// Timers that workers set: what a request says, and when a timer is due.
#include "agent/watch/timer_table.hpp"

#include <signal.h>

#include "agent/report/lines.hpp"
#include "agent/watch/watch_lines.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace std::chrono_literals;

namespace {

const TimePoint kTimersSet{1000s};
constexpr double kWall = 1'700'000'000.0;

TimerRequest timer(int pid, const std::string& scope, double in_seconds) {
  return {pid, scope, kWall + in_seconds, SIGKILL};
}

std::string wrong_with(const std::string& line) {
  const auto request = parse_timer_request(line);
  return request ? "" : request.error().sentence;
}

}  // namespace

TEST_CASE("a timer request is what torch's client writes") {
  const auto request = parse_timer_request(
      R"({"version": 1, "pid": 901, "scope_id": "train.py#42", "expiration_time": 1700000000.25,)"
      R"( "signal": 9})");
  REQUIRE(request.has_value());
  CHECK(request->pid == 901);
  CHECK(request->scope == "train.py#42");
  CHECK(request->expires == 1700000000.25);
  CHECK(request->signal == SIGKILL);
  CHECK_FALSE(request->releases());
  const auto release = parse_timer_request(
      R"({"version": 1, "pid": 901, "scope_id": "s", "expiration_time": -1, "signal": 0})");
  REQUIRE(release.has_value());
  CHECK(release->releases());
  const auto harmless = parse_timer_request(
      R"({"pid": 901, "scope_id": "s", "expiration_time": 1, "signal": -9, "more": []})");
  REQUIRE(harmless.has_value());
  CHECK(harmless->signal == 0);
}

TEST_CASE("a line that is no timer request is refused with what is wrong") {
  for (const char* line : {"", "garbage", "[1]", "{\"pid\": 1", "\xff\xfe", "null"}) {
    CHECK(wrong_with(line) == "it is not a JSON object");
  }
  const auto with = [](const std::string& pid, const std::string& scope, const std::string& time,
                       const std::string& signal) {
    return wrong_with("{\"pid\": " + pid + ", \"scope_id\": " + scope +
                      ", \"expiration_time\": " + time + ", \"signal\": " + signal + "}");
  };
  CHECK(with("1", "\"s\"", "2", "9").empty());
  for (const char* pid : {"0", "-1", "\"1\"", "1.5", "99999999999", "null"}) {
    CHECK(with(pid, "\"s\"", "2", "9") == "its pid is not a number above 0");
  }
  CHECK(with("1", "7", "2", "9") == "its scope_id is not a text");
  for (const char* time : {"\"soon\"", "null", "1e999"}) {
    CHECK_FALSE(with("1", "\"s\"", time, "9").empty());
  }
  for (const char* signal : {"\"KILL\"", "65", "1e3", "null"}) {
    CHECK(with("1", "\"s\"", "2", signal) == "its signal is not one");
  }
}

TEST_CASE("a timer is due when it expires, unless it is set again or released before") {
  TimerTable table;
  CHECK_FALSE(table.next());
  CHECK(table.set(timer(1, "a", 2), 7, kTimersSet, kWall));
  CHECK(table.set(timer(1, "b", 1), 7, kTimersSet, kWall));
  CHECK(table.set(timer(2, "a", 3), 8, kTimersSet, kWall));
  CHECK(table.next() == kTimersSet + 1s);
  CHECK(table.take_due(kTimersSet + 999ms).empty());
  CHECK(table.set(timer(1, "b", 5), 7, kTimersSet, kWall));
  CHECK(table.next() == kTimersSet + 2s);
  table.release(timer(2, "a", -1));
  table.release(timer(2, "unknown", -1));
  const auto due = table.take_due(kTimersSet + 1h);
  REQUIRE(due.size() == 2);
  CHECK(due[0].scope == "a");
  CHECK(due[0].pid == 1);
  CHECK(due[0].signal == SIGKILL);
  CHECK(due[0].process_started == 7);
  CHECK(due[1].scope == "b");
  CHECK_FALSE(table.next());
}

TEST_CASE("a timer that has expired when it is set is due at once, and one may be far away") {
  TimerTable table;
  CHECK(table.set(timer(1, "past", -3600), 7, kTimersSet, kWall));
  CHECK(table.next() == kTimersSet);
  CHECK(table.take_due(kTimersSet).size() == 1);
  CHECK(table.set(timer(1, "far", 1e300), 7, kTimersSet, kWall));
  CHECK(table.next() == kTimersSet + kTimerFarthest);
}

TEST_CASE("a timer that is held starts again from its beginning, unless it is released") {
  TimerTable table;
  CHECK(table.set(timer(1, "a", 2), 7, kTimersSet, kWall));
  CHECK(table.set(timer(1, "b", 3), 7, kTimersSet, kWall));
  for (WorkerTimer& due : table.take_due(kTimersSet + 3s)) table.hold(std::move(due));
  CHECK_FALSE(table.next());
  CHECK(table.take_due(kTimersSet + 1h).empty());
  CHECK(table.pids() == std::vector<int>{1});
  table.release(timer(1, "a", -1));
  CHECK(table.set(timer(1, "c", 9), 7, kTimersSet, kWall));
  table.start_held(kTimersSet + 1h);
  CHECK(table.next() == kTimersSet + 9s);
  CHECK(table.take_due(kTimersSet + 9s).size() == 1);
  CHECK(table.next() == kTimersSet + 1h + 3s);
}

TEST_CASE("a timer does not count the time in which its worker was stopped") {
  TimerTable table;
  CHECK(table.set(timer(1, "a", 2), 7, kTimersSet, kWall));
  CHECK(table.set(timer(1, "held", 1), 7, kTimersSet, kWall));
  for (WorkerTimer& due : table.take_due(kTimersSet + 1s)) table.hold(std::move(due));
  table.extend(1h);
  CHECK(table.next() == kTimersSet + 1h + 2s);
  table.start_held(kTimersSet + 1h);
  CHECK(table.next() == kTimersSet + 1h + 1s);
}

TEST_CASE("timers are limited in number; those there can still be set again") {
  TimerTable table;
  for (std::size_t i = 0; i < kTimersMax; ++i) {
    REQUIRE(
        table.set(timer(1 + static_cast<int>(i % 2), std::to_string(i), 1), 7, kTimersSet, kWall));
  }
  for (WorkerTimer& due : table.take_due(kTimersSet + 1s)) table.hold(std::move(due));
  CHECK(table.full());
  CHECK_FALSE(table.set(timer(1, "one more", 1), 7, kTimersSet, kWall));
  CHECK(table.set(timer(1, "0", 2), 7, kTimersSet, kWall));
  CHECK(table.pids() == std::vector<int>{1, 2});
  table.forget(1);
  CHECK(table.pids() == std::vector<int>{2});
  CHECK(table.set(timer(1, "one more", 1), 7, kTimersSet, kWall));
}

TEST_CASE("a rank whose timer expired is told with its scope and signal") {
  const WorkerName worker{Rank(1), LocalRank(1), 901, "gpu-01"};
  WorkerExit exit;
  exit.given_up = timer_finding(worker, {901, "train.py#42\nddprun: done", SIGKILL, {}, {}, 7}, {});
  CHECK(death_line(exit, 1) ==
        "ddprun: warning [W-TIMER] rank 1 (local 1, pid 901) on gpu-01: the timer "
        "\"train.py#42\\nddprun: done\" expired; ddprun sends SIGKILL; stopping 1 rank");
  CHECK(exit.given_up->ranks == std::vector<int>{1});
  CHECK_THAT(timer_finding(worker, {77, "s", SIGTERM, {}, {}, 7}, {}).text,
             ContainsSubstring("the timer \"s\" of its process 77 expired; ddprun sends SIGTERM"));
}
