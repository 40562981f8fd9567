// Data-parallel training of one model over a group: what Python's DistributedDataParallel does
// around forward and backward, with the same c10d::Reducer (Li et al. 2020, arXiv:2006.15704).
// Gradients, of the shape and type of their parameters, become sum over ranks / world size, in
// buckets during backward; parameters must have their final layout. The group and the tensors must
// outlive it. One thread. If a collective fails, before_forward() or backward() throws; then
// destroy this object before the group.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "trainer/ddp/group.hpp"

namespace c10d {
class Reducer;
}

namespace ddprun::trainer {

struct BucketLimits {
  std::int64_t first_bytes = std::int64_t{1} << 20;
  std::int64_t bytes = std::int64_t{25} << 20;
};

enum class Weights { kOfRankZero, kEqual };

class DataParallel {
 public:
  /// Collective: verifies that all ranks have the same shapes, then broadcasts rank 0's parameters
  /// and buffers, unless they are known to be equal.
  DataParallel(Group& group, std::vector<at::Tensor> parameters, std::vector<at::Tensor> buffers,
               Weights weights = Weights::kOfRankZero, BucketLimits limits = {});
  ~DataParallel();
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  /// Call before every training forward: broadcasts rank 0's buffers.
  void before_forward();
  /// Call between forward and backward.
  void before_backward();
  /// Sets gradients to zero in place: they are views of the buckets.
  void zero_gradients();
  /// Broadcasts rank 0's buffers, for example before an evaluation.
  void sync_buffers();

 private:
  Group& group_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> buffers_;
  std::shared_ptr<c10d::Reducer> reducer_;
};

}  // namespace ddprun::trainer
