// Loss and top-k sums kept on the training device, so that a step never waits for it; read once per
// row, summed over ranks on the way. Counts exactly like MetricSums. One thread.
#pragma once

#include <ATen/core/Tensor.h>

#include "trainer/ddp/group.hpp"
#include "trainer/metrics/metric_sums.hpp"

namespace ddprun::trainer {

class DeviceSums {
 public:
  explicit DeviceSums(const at::Device& device);

  /// `loss` is the mean over the batch.
  void add(const at::Tensor& logits, const at::Tensor& labels, const at::Tensor& loss);
  /// Collective: the sums of all ranks since the last call; starts again at zero.
  [[nodiscard]] MetricSums take(Group& group);

 private:
  at::Tensor sums_;  // double: samples, loss, top1, top3, top5
};

}  // namespace ddprun::trainer
