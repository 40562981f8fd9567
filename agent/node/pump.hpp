// Pump: takes a pure core through one event after the other, and has its shell do what each of them
// orders. An action may cause the next event, which then waits for its turn. `Shell` has now(), and
// act() for each action, and may have on_step(), which is called before them. Thread rule: that of
// the shell, which owns it.
#pragma once

#include <deque>
#include <utility>
#include <variant>

namespace ddprun {

template <class Core, class Event, class Shell>
class Pump {
 public:
  Pump(Shell& shell, Core core) : shell_(shell), core_(std::move(core)) {}

  /// Takes an event, or queues it while the actions of another one are carried out.
  void feed(Event event) {
    events_.push_back(std::move(event));
    if (std::exchange(feeding_, true)) return;
    while (!events_.empty()) {
      const Event next = std::move(events_.front());
      events_.pop_front();
      const auto actions = core_.step(next, shell_.now());
      if constexpr (requires { shell_.on_step(); }) shell_.on_step();
      for (const auto& action : actions) {
        std::visit([this](const auto& one) { shell_.act(one); }, action);
      }
    }
    feeding_ = false;
  }
  /// Takes an event that answers the action that is carried out: it comes before what is queued.
  void answer(Event event) { events_.push_front(std::move(event)); }
  /// Whether no event is being taken.
  [[nodiscard]] bool idle() const { return !feeding_; }
  [[nodiscard]] const Core& operator*() const { return core_; }
  [[nodiscard]] const Core* operator->() const { return &core_; }
  [[nodiscard]] Core& core() { return core_; }

 private:
  Shell& shell_;
  Core core_;
  std::deque<Event> events_{};
  bool feeding_ = false;
};

}  // namespace ddprun
