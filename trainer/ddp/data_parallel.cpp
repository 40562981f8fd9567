#include "trainer/ddp/data_parallel.hpp"

#include <torch/csrc/distributed/c10d/reducer.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace ddprun::trainer {

namespace {

// Like Python's DDP, start with one bucket. The Reducer rebuilds the buckets after the first step,
// in the order in which gradients became ready.
std::shared_ptr<c10d::Reducer> make_reducer(const std::vector<at::Tensor>& parameters,
                                            const Group& group, BucketLimits limits) {
  const std::vector<bool> dense(parameters.size(), false);
  auto [buckets, sizes] = c10d::compute_bucket_assignment_by_size(
      parameters, {std::numeric_limits<std::size_t>::max()}, dense);
  std::reverse(buckets.begin(), buckets.end());
  return std::make_shared<c10d::Reducer>(
      parameters, std::move(buckets), group.process_group(), dense, limits.bytes,
      /*find_unused_parameters=*/false, /*gradient_as_bucket_view=*/true,
      std::unordered_map<std::size_t, std::string>{}, limits.first_bytes,
      /*skip_all_reduce_unused_params=*/false, /*use_python_reducer=*/false,
      /*bucket_bytes_cap_list=*/std::vector<std::int64_t>{});
}

}  // namespace

DataParallel::DataParallel(Group& group, std::vector<at::Tensor> parameters,
                           std::vector<at::Tensor> buffers, Weights weights, BucketLimits limits)
    : group_(group), parameters_(std::move(parameters)) {
  for (const auto& buffer : buffers) buffers_.push_back(buffer.detach());
  if (group_.alone()) return;
  c10d::verify_params_across_processes(group_.process_group(), parameters_, {});
  if (weights == Weights::kOfRankZero) {
    std::vector<at::Tensor> state;
    for (const auto& parameter : parameters_) state.push_back(parameter.detach());
    state.insert(state.end(), buffers_.begin(), buffers_.end());
    group_.broadcast(state);
  }
  reducer_ = make_reducer(parameters_, group_, limits);
}

DataParallel::~DataParallel() = default;

void DataParallel::before_forward() {
  if (!reducer_) return;
  reducer_->prepare_for_forward();
  reducer_->rebuild_buckets();  // in the second step only; that call is a collective
  sync_buffers();
}

void DataParallel::before_backward() {
  if (reducer_) reducer_->prepare_for_backward({});
}

void DataParallel::zero_gradients() {
  for (auto& parameter : parameters_) {
    if (parameter.grad().defined()) parameter.mutable_grad().zero_();
  }
}

void DataParallel::sync_buffers() {
  group_.broadcast(buffers_);
}

}  // namespace ddprun::trainer
