#include "trainer/train/evaluate.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>

#include <algorithm>
#include <numeric>

namespace ddprun::trainer {

namespace {

constexpr std::size_t kTestBatch = 500;

}  // namespace

Means evaluate(Session& session) {
  const at::NoGradGuard no_grad;
  session.parallel->sync_buffers();
  session.model.set_mode(Mode::kEvaluate);
  const auto share =
      share_of(session.data.test.size(), {session.world.rank, session.world.world_size});
  DeviceSums sums(session.placement.device);
  std::vector<std::uint32_t> ids(share.size());
  std::iota(ids.begin(), ids.end(), static_cast<std::uint32_t>(share.begin));
  for (std::size_t begin = 0; begin < ids.size(); begin += kTestBatch) {
    const auto count = std::min(kTestBatch, ids.size() - begin);
    const auto batch = session.test_batches->batch(std::span(ids).subspan(begin, count), {});
    const AutocastScope autocast(session.precision, session.placement.device);
    const auto logits = session.model.forward(batch.images);
    sums.add(logits, batch.labels, at::cross_entropy_loss(logits, batch.labels));
  }
  session.model.set_mode(Mode::kTrain);
  return sums.take(session.group).means();
}

}  // namespace ddprun::trainer
