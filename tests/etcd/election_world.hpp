// ElectionWorld: elections against a register (register.hpp) over a network that delays, loses and
// repeats, with processes that sleep, end and are started again, servers without a quorum, and
// nodes that are cut off. Each leader runs a run: rounds, at some time a verdict, then another run.
// The next event is always the next thing that happens, so a life takes milliseconds.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/etcd/options.hpp"
#include "tests/etcd/register.hpp"

namespace ddprun::etcd {

class ElectionWorld {
 public:
  ElectionWorld(unsigned seed, int processes);
  ~ElectionWorld();
  ElectionWorld(const ElectionWorld&) = delete;
  ElectionWorld& operator=(const ElectionWorld&) = delete;

  void run(Duration time, bool faults);
  /// Every server answers, no process sleeps or is cut off.
  void heal();
  [[nodiscard]] int acting() const;
  [[nodiscard]] bool all_agree() const;
  /// The first promise that did not hold; empty: all did.
  [[nodiscard]] const std::string& broken() const { return broken_; }
  [[nodiscard]] int leaders() const { return leaders_; }
  [[nodiscard]] int verdicts() const { return static_cast<int>(announced_.size()); }
  [[nodiscard]] int barred() const { return barred_; }

 private:
  struct Process;
  struct Message {
    std::function<void()> arrive;
    Process* to = nullptr;  // null: to the register
    int life = 0;           // of that process
  };

  bool chance(int percent) { return static_cast<int>(random_() % 100) < percent; }
  Duration up_to(std::chrono::milliseconds most);
  void begin(Process& process);
  void at(TimePoint when, Message message);
  void feed_later(Process& process, const Event& event);
  void feed(Process& process, const Event& event);
  void step(TimePoint until);
  [[nodiscard]] TimePoint next_time() const;
  void disturb();
  void tell_watchers();
  template <class Handle>
  void ask(Process& process, RequestId id, Handle handle);

  void take(Process& process, const Actions& actions);
  void act(Process& process, const AskLook& look);
  void act(Process& process, const AskGrant& grant);
  void act(Process& process, const AskCampaign& campaign);
  void act(Process& process, const AskRenew& renew);
  void act(Process& process, const AskRecord& record);
  void act(Process& process, const AskWatch& watch);
  void act(Process& process, const Kept& kept);
  void act(Process& process, const Revoke& revoke);
  void act(Process& process, const Follow& follow);
  void act(Process& process, const Lead& lead);
  void act(Process& process, const StepDown& down);
  void act(Process& process, const ArmTimer& timer);
  void act(Process& process, const Bar& bar);
  template <class Other>
  void act(Process& /*process*/, const Other& /*other*/) {}

  void govern(Process& process);
  void check();
  void check_lead(const Process& process, const Lead& lead);
  void fail(const std::string& promise);

  std::mt19937 random_;
  TimePoint now_{std::chrono::seconds(1000)};
  Register register_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::multimap<TimePoint, Message> messages_;
  bool faults_ = true;
  TimePoint down_until_{};
  TimePoint disturb_at_{};
  Revision last_term_ = 0;
  int last_round_ = 0;
  std::set<int> announced_;  // the exit codes of verdicts that agents have heard
  int last_code_ = 0;
  int leaders_ = 0;
  int barred_ = 0;
  std::string broken_;
};

}  // namespace ddprun::etcd
