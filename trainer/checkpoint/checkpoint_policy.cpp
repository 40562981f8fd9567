#include "trainer/checkpoint/checkpoint_policy.hpp"

#include <algorithm>

namespace ddprun::trainer {

CheckpointPolicy::CheckpointPolicy(const CheckpointRule& rule, Time start)
    : rule_(rule), saved_at_(start), paid_at_(start) {}

bool CheckpointPolicy::due(Time now) const {
  if (rule_.budget) return now >= paid_at_;
  return rule_.every.count() > 0 && now - saved_at_ >= rule_.every;
}

void CheckpointPolicy::pay(Time began, Duration cost) {
  if (!rule_.budget) return;
  const std::chrono::duration<double> exact = cost;
  paid_at_ =
      std::max(paid_at_, began) + std::chrono::duration_cast<Duration>(exact / *rule_.budget);
}

}  // namespace ddprun::trainer
