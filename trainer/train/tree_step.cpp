#include "trainer/train/tree_step.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

namespace ddprun::trainer {

namespace {

constexpr double kMomentum = 0.1;  // of running statistics, as torch.nn.BatchNorm2d
constexpr std::size_t kColumns = MetricSums::kSize + 3;
constexpr std::uint64_t kLow = 0xFFFFFFFFU;

// A part of `flat` in the shape and memory layout of `like`.
at::Tensor part_of(const at::Tensor& flat, std::int64_t offset, const at::Tensor& like) {
  return flat.as_strided(like.sizes(), like.strides(), flat.storage_offset() + offset);
}

std::vector<at::Tensor> copies_of(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> copies;
  copies.reserve(tensors.size());
  for (const auto& tensor : tensors) copies.push_back(tensor.clone());
  return copies;
}

// The digest is split, because a double holds 53 bits and the halves of a step fit.
void write_row(double* row, const MetricSums& sums, const SampleDigest& samples) {
  const auto metrics = sums.vector();
  std::copy(metrics.begin(), metrics.end(), row);
  row[MetricSums::kSize] = static_cast<double>(samples.count);
  row[MetricSums::kSize + 1] = static_cast<double>(samples.sum & kLow);
  row[MetricSums::kSize + 2] = static_cast<double>(samples.sum >> 32U);
}

StepResult sum_of_rows(const std::vector<double>& table) {
  StepResult result;
  for (std::size_t at = 0; at < table.size(); at += kColumns) {
    MetricSums::Vector metrics{};
    std::copy_n(table.begin() + static_cast<std::ptrdiff_t>(at), metrics.size(), metrics.begin());
    result.sums.add(MetricSums::from(metrics));
    const double* digest = &table[at + MetricSums::kSize];
    result.samples +=
        {static_cast<std::uint64_t>(digest[0]),
         static_cast<std::uint64_t>(digest[1]) + (static_cast<std::uint64_t>(digest[2]) << 32U)};
  }
  return result;
}

// Every row is that of one rank and zero on the others, so the all-reduce is exact in any order.
void sum_disjoint(std::vector<double>& table, Group& group) {
  if (group.alone()) return;
  auto tensor = at::tensor(table, at::kDouble);
  group.sum(tensor);
  const auto* values = tensor.const_data_ptr<double>();
  table.assign(values, values + table.size());
}

}  // namespace

TreeStep::TreeStep(ResNet18& model) : buffers_(detached(model.buffers())) {
  // A forward then leaves the statistics of its own batch in the buffers.
  model.set_statistics_momentum(1.0);
  for (const auto& item : model.parameters()) {
    parameters_.push_back(item.tensor);
    gradients_ += item.tensor.numel();
  }
  size_ = gradients_;
  for (const auto& buffer : buffers_) {
    const bool counts = buffer.scalar_type() == at::kLong;
    (counts ? counters_ : statistics_).push_back(buffer);
    if (!counts) size_ += buffer.numel();
  }
}

StepResult TreeStep::compute(std::span<const std::uint32_t> ids, std::size_t micro_batches,
                             Group& group, const Compute& compute,
                             const std::function<void()>& before_reduce) {
  saved_ = copies_of(buffers_);
  const auto leaves = std::min(micro_batches, ids.size());
  const auto slice = (size_ + group.size() - 1) / group.size();
  table_.assign(leaves * kColumns, 0.0);
  const auto take = [&](const Share& node) -> std::optional<at::Tensor> {
    if (node.size() > 1) return std::nullopt;
    const auto part =
        share_of(ids.size(), {static_cast<int>(node.begin), static_cast<int>(leaves)});
    const auto images = ids.subspan(part.begin, part.size());
    const MicroBatch batch{images,
                           static_cast<double>(part.size()) / static_cast<double>(ids.size())};
    auto flat = at::zeros({slice * group.size()}, parameters_.front().options());
    const auto sums = this->leaf(batch, compute, flat);
    write_row(&table_[node.begin * kColumns], sums, digest_of(images));
    return flat;
  };
  std::vector<at::Tensor> own;
  for (const auto& node : nodes_within(leaves, share_of(leaves, {group.rank(), group.size()})))
    own.push_back(tree_sum<at::Tensor>(node, take));
  before_reduce();
  const auto total = reduce(own, leaves, slice, group);
  sum_disjoint(table_, group);
  point_gradients_into(total);
  apply_statistics(total);
  return sum_of_rows(table_);
}

// Backward adds to the zeros of `flat`; the statistics of the batch follow.
MetricSums TreeStep::leaf(const MicroBatch& batch, const Compute& compute, const at::Tensor& flat) {
  point_gradients_into(flat);
  const auto sums = compute(batch);
  const at::NoGradGuard no_grad;
  auto offset = gradients_;
  for (const auto& statistic : statistics_) {
    part_of(flat, offset, statistic).copy_(statistic.mul(batch.weight));
    offset += statistic.numel();
  }
  return sums;
}

// All-to-all of slices, the tree on every slice, all-gather: each rank receives and sends about
// twice the gradients, whatever the world size.
at::Tensor TreeStep::reduce(const std::vector<at::Tensor>& own, std::size_t leaves,
                            std::int64_t slice, Group& group) const {
  if (group.alone()) return own.front();
  const auto world = group.size();
  const auto count = static_cast<std::int64_t>(own.size());
  const auto rows = own.empty() ? at::empty({world, 0}, parameters_.front().options())
                                : at::stack(own).view({count, world, slice}).transpose(0, 1);
  std::vector<std::vector<Share>> nodes;
  std::vector<std::int64_t> lengths;
  for (int rank = 0; rank < world; ++rank) {
    nodes.push_back(nodes_within(leaves, share_of(leaves, {rank, world})));
    lengths.push_back(static_cast<std::int64_t>(nodes.back().size()) * slice);
  }
  const auto received = group.exchange(rows, lengths);
  const auto take = [&](const Share& node) -> std::optional<at::Tensor> {
    for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
      const auto found = std::ranges::find(nodes[rank], node);
      if (found == nodes[rank].end()) continue;
      return received[rank].narrow(0, (found - nodes[rank].begin()) * slice, slice);
    }
    return std::nullopt;
  };
  return group.gather(tree_sum<at::Tensor>({0, leaves}, take));
}

void TreeStep::point_gradients_into(const at::Tensor& flat) {
  std::int64_t offset = 0;
  for (auto& parameter : parameters_) {
    parameter.mutable_grad() = part_of(flat, offset, parameter);
    offset += parameter.numel();
  }
}

void TreeStep::apply_statistics(const at::Tensor& flat) {
  restore();
  auto offset = gradients_;
  for (auto& statistic : statistics_) {
    statistic.mul_(1.0 - kMomentum).add_(part_of(flat, offset, statistic), kMomentum);
    offset += statistic.numel();
  }
  for (auto& counter : counters_) counter.add_(1);
}

void TreeStep::restore() {
  for (std::size_t i = 0; i < saved_.size(); ++i) buffers_[i].copy_(saved_[i]);
}

}  // namespace ddprun::trainer
