// Where the time of a simulated run goes: training, the phases of each recovery, work that was
// lost. Plain arithmetic, no thread rule.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/clock.hpp"

namespace ddprun::bench {

enum class Phase : std::uint8_t {
  kDetect,     // until an agent or the coordinator notices
  kAgree,      // until the last node has the next round
  kAwaitNode,  // too few nodes are connected
  kStop,       // until old ranks have ended, or survivors are free
  kStart,      // until new ranks have imported what they need
  kRebuild,    // process groups
  kTransfer,   // the state of the model
  kFirstStep,
  kBroken,  // recoveries that another failure interrupted
};
inline constexpr std::array<std::string_view, 9> kPhaseNames{
    "detect",  "agree",    "wait for a node", "free or stop",          "start and import",
    "rebuild", "transfer", "first step",      "interrupted recoveries"};

class Ledger {
 public:
  /// All ranks of `share` of the nodes train.
  void train(TimePoint now, double share);
  /// The first failure, or the end of the round for another reason, interrupts training; another
  /// one interrupts the recovery. `keeps`: what of the training since `train` is committed.
  void interrupt(TimePoint now, Duration lost);
  void mark(Phase phase, TimePoint until);
  void finish(TimePoint now);

  [[nodiscard]] bool trains() const { return trains_; }
  /// Since training last went on.
  [[nodiscard]] Duration trained_for(TimePoint now) const { return now - since_; }
  [[nodiscard]] double trained_seconds() const { return trained_; }
  [[nodiscard]] double lost_seconds() const { return lost_; }
  [[nodiscard]] double degraded_seconds() const { return degraded_; }
  [[nodiscard]] double seconds_of(Phase phase) const {
    return phases_[static_cast<std::size_t>(phase)];
  }
  [[nodiscard]] double recovery_seconds() const;
  [[nodiscard]] int recoveries() const { return recoveries_; }
  [[nodiscard]] int interrupted_recoveries() const { return broken_; }

 private:
  bool trains_ = false;
  double share_ = 1;
  TimePoint since_{};   // the last change
  TimePoint marked_{};  // the end of the last phase of this recovery
  std::array<double, kPhaseNames.size()> phases_{};
  std::array<double, kPhaseNames.size()> pending_{};  // of this recovery
  double trained_ = 0;                                // times the share of the nodes
  double degraded_ = 0;  // nodes that were missing while others trained
  double lost_ = 0;
  int recoveries_ = 0;
  int broken_ = 0;
};

}  // namespace ddprun::bench
