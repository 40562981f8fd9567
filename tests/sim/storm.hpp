// The bad minute of a simulated life: agents come, faults strike, what was killed is started again.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "tests/sim/faults.hpp"
#include "tests/sim/sole_world.hpp"

namespace ddprun::sim {

struct Plan {
  SoleOptions world;
  int nodes = 2;
  bool numbered = false;
  bool alien = false;  // the last node runs another command
  int faults = 0;
  std::optional<Duration> last_step{};  // when ranks that survive finish as a node joins
};

[[nodiscard]] Plan make_plan(std::uint64_t seed);
[[nodiscard]] std::string words(const Plan& plan);
[[nodiscard]] std::string words_of_survivors(const WorldOptions& world);

class Storm;
/// Those of a world with one coordinator.
[[nodiscard]] Faults<Storm> sole_faults();

class Storm {
 public:
  static constexpr Duration kLength = seconds(60);

  Storm(SoleWorld& world, const Plan& plan, const Faults<Storm>& faults)
      : world_(world), plan_(plan), faults_(faults) {}

  void schedule();
  /// No more faults: everything is mended, and at least MIN agents are there if the run continues.
  void calm();
  /// The names of those that struck, in order.
  [[nodiscard]] const std::string& struck() const { return struck_; }
  [[nodiscard]] bool harmless() const { return harmless_; }

  // For the table.
  [[nodiscard]] SoleWorld& world() { return world_; }
  [[nodiscard]] const Plan& plan() const { return plan_; }
  [[nodiscard]] Random& random() { return world_.random(); }
  void later(Duration delay, std::function<void()> what) {
    world_.timeline().after(delay, [this, what = std::move(what)] {
      world_.disturb();
      what();
    });
  }
  void start(int node);
  void start_later(int node);
  void lose_coordinator();
  /// Not within half a minute of the last time.
  [[nodiscard]] bool may_pause_coordinator();

 private:
  void strike();
  void finish_as_it_grows();
  [[nodiscard]] bool over() const;

  SoleWorld& world_;
  const Plan& plan_;
  const Faults<Storm>& faults_;
  std::string struck_;
  bool harmless_ = true;
  bool calm_ = false;
  TimePoint no_pause_before_{};
};

}  // namespace ddprun::sim
