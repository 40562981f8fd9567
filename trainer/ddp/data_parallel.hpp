// Data parallel training of one model over a group: what Python's DistributedDataParallel does
// around forward and backward, on the same c10d::Reducer. Gradients are averaged over ranks in
// buckets while backward still runs. The group and the tensors must outlive it. One thread. A
// failed collective throws out of before_forward() or backward(); then destroy this first, the
// group second.
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

class DataParallel {
 public:
  /// Collective: compares shapes over ranks, then gives all ranks rank 0's parameters and buffers.
  DataParallel(Group& group, std::vector<at::Tensor> parameters, std::vector<at::Tensor> buffers,
               BucketLimits limits = {});
  ~DataParallel();
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  /// Before every training forward: gives all ranks rank 0's buffers.
  void before_forward();
  /// Between forward and backward.
  void before_backward();
  /// Sets gradients to zero in place: they are views of the buckets.
  void zero_gradients();
  /// Gives all ranks rank 0's buffers, for example before an evaluation.
  void sync_buffers();

 private:
  Group& group_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> buffers_;
  std::shared_ptr<c10d::Reducer> reducer_;
};

}  // namespace ddprun::trainer
