#include "trainer/train/evaluate.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <numeric>

namespace ddprun::trainer {

namespace {

constexpr std::size_t kTestBatch = 500;
constexpr std::size_t kFixedTestBatch = 100;  // of --deterministic: all ranks have some

void add_images(Session& session, const Share& share, DeviceSums& sums) {
  std::vector<std::uint32_t> ids(share.size());
  std::iota(ids.begin(), ids.end(), static_cast<std::uint32_t>(share.begin));
  for (std::size_t begin = 0; begin < ids.size(); begin += kTestBatch) {
    const auto count = std::min(kTestBatch, ids.size() - begin);
    const auto batch = session.test_batches->batch(std::span(ids).subspan(begin, count), {});
    const AutocastScope autocast(session.precision, session.placement.device);
    const auto logits = session.model.forward(batch.images);
    sums.add(logits, batch.labels, at::cross_entropy_loss(logits, batch.labels));
  }
}

// Collective: in batches that do not depend on the world size, added in their order.
MetricSums sums_of_fixed_batches(Session& session, const Place& place) {
  const std::size_t images = session.data.test.size();
  const auto batches = (images + kFixedTestBatch - 1) / kFixedTestBatch;
  auto table =
      at::zeros({static_cast<std::int64_t>(batches), std::int64_t{MetricSums::kSize}}, at::kDouble);
  auto* rows = table.mutable_data_ptr<double>();
  const auto own = share_of(batches, place);
  for (std::size_t i = own.begin; i < own.end; ++i) {
    DeviceSums sums(session.placement.device);
    add_images(session, {i * kFixedTestBatch, std::min(images, (i + 1) * kFixedTestBatch)}, sums);
    const auto vector = sums.own().vector();
    std::copy(vector.begin(), vector.end(), rows + i * vector.size());
  }
  session.group->sum(table);  // exact: every row is that of one rank and zero on the others
  MetricSums all;
  for (std::size_t i = 0; i < batches; ++i) {
    MetricSums::Vector vector{};
    std::copy_n(rows + i * vector.size(), vector.size(), vector.begin());
    all.add(MetricSums::from(vector));
  }
  return all;
}

MetricSums sums_of_shares(Session& session, const Place& place) {
  session.parallel->sync_buffers();
  DeviceSums sums(session.placement.device);
  add_images(session, share_of(session.data.test.size(), place), sums);
  return sums.take(*session.group);
}

}  // namespace

Means evaluate(Session& session) {
  const at::NoGradGuard no_grad;
  session.model.set_mode(Mode::kEvaluate);
  const Place place{session.world.rank, session.world.world_size};
  const auto sums =
      session.tree ? sums_of_fixed_batches(session, place) : sums_of_shares(session, place);
  session.model.set_mode(Mode::kTrain);
  return sums.means();
}

}  // namespace ddprun::trainer
