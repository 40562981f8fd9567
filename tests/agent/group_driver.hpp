// A WorkerGroup whose actions are written in words: what the tests of worker_group share.
#pragma once

#include <signal.h>

#include <string>
#include <vector>

#include "agent/node/worker_group.hpp"
#include "base/pipe_end.hpp"
#include "tests/support/catch.hpp"

namespace ddprun::test {

using namespace std::chrono_literals;

inline const TimePoint kNow{1000s};
// The order after the grace; which one that is belongs to kill_order and its tests.
inline const StopOrder kLastOrder = next_stop_order(StopStage::kSignalled, {SIGTERM, 30s});
inline const auto kOk = ExitStatus::exited(0);
inline const auto kFailed3 = ExitStatus::exited(3);

inline LocalRank local(int rank) {
  return LocalRank(rank);
}
inline Exited exited(int rank, ExitStatus status) {
  return {local(rank), status};
}
inline Exited left_behind(int rank, ExitStatus status) {
  return {local(rank), status, LeftBehind::kProcesses};
}
inline SpawnFailed spawn_failed(int rank) {
  return {local(rank), Error(ErrorKind::kNotFound, "cannot run x: no such file")};
}

inline std::string text(const GroupAction& action) {
  if (const auto* spawn = std::get_if<Spawn>(&action)) {
    return "spawn " + std::to_string(spawn->rank.value());
  }
  if (const auto* signal = std::get_if<Signal>(&action)) {
    return signal_name(signal->signal) + " to " + std::to_string(signal->rank.value());
  }
  if (const auto* timer = std::get_if<ArmTimer>(&action)) {
    const auto after = std::chrono::duration_cast<std::chrono::seconds>(timer->deadline - kNow);
    return "timer at " + std::to_string(after.count()) + " s";
  }
  if (const auto* failure = std::get_if<LogFailure>(&action)) {
    return "log that " + std::to_string(failure->rank.value()) + " failed";
  }
  if (const auto* stop = std::get_if<LogStop>(&action)) return "log " + signal_name(stop->signal);
  if (const auto* first = std::get_if<FirstFailure>(&action)) {
    return std::to_string(first->rank.value()) + " failed first";
  }
  if (std::holds_alternative<AllRunning>(action)) return "all run";
  if (std::holds_alternative<AllSucceeded>(action)) return "all succeeded";
  if (const auto* left = std::get_if<LogLeftBehind>(&action)) {
    const std::string what = left->signal == 0 ? "waited for" : signal_name(left->signal);
    return "log what " + std::to_string(left->rank.value()) + " left: " + what +
           (left->quiet ? ", no progress" : "");
  }
  if (std::holds_alternative<Disarm>(action)) return "disarm";
  if (const auto* again = std::get_if<LogAgain>(&action)) {
    return "log that " + std::to_string(again->rank.value()) + " starts again";
  }
  if (std::holds_alternative<Recovered>(action)) return "recovered";
  return "finish";
}

inline std::string text(const GroupActions& actions) {
  std::string all;
  for (const GroupAction& action : actions) all += (all.empty() ? "" : ", ") + text(action);
  return all;
}

// What carrying out the last order looks like, for these ranks, `after` the start.
inline std::string last_order_to(const std::vector<int>& ranks, Duration after) {
  GroupActions actions;
  for (const int rank : ranks) actions.push_back(Signal{local(rank), kLastOrder.signal});
  actions.push_back(ArmTimer{kNow + after + kLastOrder.grace});
  return text(actions);
}

// A group of three with a grace of 30 s and 10 s for stragglers; each factory brings one to the
// state it is named after.
struct Group {
  WorkerGroup group{{3, 30s}};

  Group() = default;
  explicit Group(WorkerGroup::Options options) : group(std::move(options)) {}

  std::vector<LocalRank> write_stacks{};  // when they are asked to

  std::string operator()(const GroupEvent& event, Duration after = 0s) {
    GroupActions actions = group.step(event, kNow + after);
    const bool asks = !actions.empty() && std::holds_alternative<AskStacks>(actions.back());
    if (!asks) return text(actions);
    actions.pop_back();
    const GroupActions then = group.step(StacksAsked{write_stacks}, kNow + after);
    actions.insert(actions.end(), then.begin(), then.end());
    return text(actions);
  }
  GroupState state() const { return group.state(); }
  /// The grace has ended after that time: SIGKILL to workers, and then to all. Returns the first.
  std::string kill(Duration after) {
    std::string first = (*this)(TimerExpired{kNow + after}, after);
    (*this)(TimerExpired{kNow + after + kPipeEndWait}, after);
    return first;
  }

  static Group init() { return {}; }
  static Group starting() {
    Group one;
    one(Start{});
    one(Spawned{local(0)});
    return one;
  }
  static Group healthy() {
    Group one = starting();
    one(Spawned{local(1)});
    one(Spawned{local(2)});
    return one;
  }
  static Group stopping() {
    Group one = healthy();
    one(exited(1, kFailed3));
    return one;
  }
  static Group stopping_while_spawning() {
    Group one = starting();  // rank 1 is on its way
    one(exited(0, kFailed3));
    return one;
  }
  static Group killing() {
    Group one = stopping();
    one.kill(30s);
    return one;
  }
  static Group killing_while_spawning() {
    Group one = stopping_while_spawning();
    one.kill(30s);
    return one;
  }
  static Group succeeded() {
    Group one = healthy();
    for (int rank = 0; rank < 3; ++rank) one(exited(rank, kOk));
    return one;
  }
  static Group failed_with_unkillable() {
    Group one = killing();
    one(exited(0, ExitStatus::signaled(SIGKILL)), 30s);
    one(TimerExpired{kNow + 40s}, 40s);
    return one;
  }
  /// All ended with 0, and rank 1 left processes behind.
  static Group straggling() {
    Group one = healthy();
    one(left_behind(1, kOk));
    one(exited(0, kOk));
    one(exited(2, kOk));
    return one;
  }
  static Group stopped() {
    Group one = init();
    one(StopRequested{SIGINT});
    return one;
  }
  static Group stopped_with_unkillable() {
    Group one = healthy();
    one(StopRequested{SIGINT});
    one.kill(30s);
    one(TimerExpired{kNow + 40s}, 40s);
    return one;
  }
};

}  // namespace ddprun::test
