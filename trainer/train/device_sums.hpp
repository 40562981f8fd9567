// Loss and top-k sums on the training device, so that a step never synchronizes with it; reduced
// over ranks and read once per row. Counts exactly like MetricSums. One thread.
#pragma once

#include <ATen/core/Tensor.h>

#include "trainer/ddp/group.hpp"
#include "trainer/metrics/metric_sums.hpp"

namespace ddprun::trainer {

class DeviceSums {
 public:
  explicit DeviceSums(const at::Device& device);

  /// logits [N, classes] float32 or bfloat16, labels [N] int64, loss [] the mean over the batch.
  void add(const at::Tensor& logits, const at::Tensor& labels, const at::Tensor& loss);
  /// Those of this rank; waits for the device.
  [[nodiscard]] MetricSums own() const;
  /// Collective: returns the sums of all ranks since the last call and resets them.
  [[nodiscard]] MetricSums take(Group& group);

 private:
  at::Tensor sums_;  // float64 [5]: samples, loss, top1, top3, top5
};

}  // namespace ddprun::trainer
