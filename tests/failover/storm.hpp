// Storm: what happens to a World in a random life, and the life itself. All decided by the seed.
#pragma once

#include <string>

#include "tests/failover/world.hpp"
#include "tests/sim/faults.hpp"
#include "tests/sim/lives.hpp"

namespace ddprun::failover {

struct Plan {
  WorldOptions world;
  Duration length = seconds(20);    // of the storm
  Duration pause_max = seconds(5);  // between two faults
  bool leaves = false;              // nodes are asked to stop, too
  /// Something between two hosts breaks connections. A coordinator takes that for the end of a
  /// process, so that a partition right after it can make two worlds.
  bool resets = false;
  bool workers_vary = false;  // in number, in what becomes of them, and some are kept
};

[[nodiscard]] Plan make_plan(std::uint64_t seed);
[[nodiscard]] std::string words(const Plan& plan);

class Storm;
[[nodiscard]] sim::Faults<Storm> failover_faults();

class Storm {
 public:
  /// Those that the plan leaves out do not strike.
  Storm(World& world, const Plan& plan, sim::Faults<Storm> faults);
  /// Schedules the first fault; each schedules the next one.
  void begin();
  void calm() { is_over_ = true; }

  // For the table.
  [[nodiscard]] World& world() { return world_; }
  [[nodiscard]] Random& random() { return random_; }
  [[nodiscard]] int any() { return random_.between(0, world_.node_count() - 1); }
  /// Above 0, sometimes beyond the silence limit.
  [[nodiscard]] Duration while_();
  void cut_for(int from, int to, Duration time);

 private:
  void strike();
  /// Mostly the host of a coordinator that has agents.
  [[nodiscard]] int leader();

  World& world_;
  const Plan& plan_;
  Random random_;
  sim::Faults<Storm> faults_;
  bool is_over_ = false;
};

/// Throws Violation.
[[nodiscard]] sim::Summary run_life(std::uint64_t seed, const sim::Faults<Storm>& faults,
                                    const sim::Print& trace);

}  // namespace ddprun::failover
