// When a checkpoint is due: after a fixed time, or as often as a budget allows. Pure.
//
// The budget is a share of the training time. A checkpoint that cost c is paid by c / share of
// training before the next one is due, so all checkpoints but the latest cost at most that share
// of the time, however their costs vary. The first one is due at once: nothing is known of its
// cost. It is the policy of CheckFreq (Mohan, Phanishayee, Chidambaram: "CheckFreq: Frequent,
// Fine-Grained DNN Checkpointing", FAST 2021): measure the cost while training, and choose the
// frequency that keeps to a limit. Young's interval, sqrt(2 c M) for a mean time M between failures
// ("A first order approximation to the optimum checkpoint interval", CACM 1974), is the share
// sqrt(c / 2 M).
#pragma once

#include <chrono>
#include <optional>

namespace ddprun::trainer {

struct CheckpointRule {
  std::chrono::milliseconds every{};  // between two; 0: none is ever due
  std::optional<double> budget{};     // share of the training time, instead of `every`
};

class CheckpointPolicy {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;
  using Duration = Clock::duration;

  CheckpointPolicy(const CheckpointRule& rule, Time start);

  [[nodiscard]] bool due(Time now) const;
  void saved(Time at) { saved_at_ = at; }
  /// Training lost `cost` to a checkpoint that began at `began`, due or not.
  void pay(Time began, Duration cost);

 private:
  CheckpointRule rule_;
  Time saved_at_;
  Time paid_at_;  // what was spent until now is within the budget from here on
};

}  // namespace ddprun::trainer
