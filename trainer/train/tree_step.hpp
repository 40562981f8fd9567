// A step of --deterministic, whose bits do not depend on the world size. The global batch is cut
// into a fixed number of micro-batches; each is computed alone, with batch-norm statistics of its
// own, and gradients and statistics are summed over all of them in a fixed tree (sum_tree.hpp).
// Running statistics take the mean of those of the micro-batches, once per step. Costs: one small
// batch after the other, the bytes of a ring all-reduce but none of its overlap with backward, and
// log2(micro-batches) more copies of the gradients. One thread. If a collective fails, compute()
// throws, and restore() returns the model to the state before the step.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "trainer/data/sample_log.hpp"
#include "trainer/data/sum_tree.hpp"
#include "trainer/ddp/group.hpp"
#include "trainer/metrics/metric_sums.hpp"
#include "trainer/model/resnet18.hpp"

namespace ddprun::trainer {

struct MicroBatch {
  std::span<const std::uint32_t> ids;
  double weight = 0;  ///< its share of the images of the step
};

/// What the whole world computed in a step; equal on every rank.
struct StepResult {
  MetricSums sums;
  SampleDigest samples;
};

class TreeStep {
 public:
  explicit TreeStep(ResNet18& model);

  /// Forward and backward of one micro-batch, with a loss multiplied by its weight.
  using Compute = std::function<MetricSums(const MicroBatch& batch)>;

  /// Collective: afterwards the gradients are those of the mean loss over `ids`, the images of all
  /// ranks, and the running statistics are those after the step.
  /// `before_reduce` is called before the first collective.
  StepResult compute(std::span<const std::uint32_t> ids, std::size_t micro_batches, Group& group,
                     const Compute& compute, const std::function<void()>& before_reduce);
  /// The step is applied: nothing is restored any more.
  void commit() { saved_.clear(); }
  /// The buffers as before the compute() that has not been committed.
  void restore();

 private:
  MetricSums leaf(const MicroBatch& batch, const Compute& compute, const at::Tensor& flat);
  [[nodiscard]] at::Tensor reduce(const std::vector<at::Tensor>& own, std::size_t leaves,
                                  std::int64_t slice, Group& group) const;
  void point_gradients_into(const at::Tensor& flat);
  void apply_statistics(const at::Tensor& flat);

  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> statistics_;  // running means and variances
  std::vector<at::Tensor> counters_;
  std::vector<at::Tensor> buffers_;  // both
  std::vector<at::Tensor> saved_;    // buffers before the step
  std::int64_t gradients_ = 0;       // floats
  std::int64_t size_ = 0;            // floats of all gradients and statistics
  std::vector<double> table_;        // metrics and sample digests, a row per micro-batch
};

}  // namespace ddprun::trainer
