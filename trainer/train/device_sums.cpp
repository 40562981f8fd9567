#include "trainer/train/device_sums.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

namespace ddprun::trainer {

DeviceSums::DeviceSums(const at::Device& device)
    : sums_(at::zeros({static_cast<std::int64_t>(MetricSums::kSize)},
                      at::TensorOptions(device).dtype(at::kDouble))) {}

void DeviceSums::add(const at::Tensor& logits, const at::Tensor& labels, const at::Tensor& loss) {
  const at::NoGradGuard no_grad;
  const auto scores = logits.detach().to(at::kFloat);
  const auto column = labels.unsqueeze(1);
  const auto own = scores.gather(1, column);
  const auto classes = at::arange(scores.size(1), labels.options());
  // Classes that rank below the correct one; ties are broken in favour of the lower class.
  // Comparisons with NaN are false, so a diverged model is never correct.
  const auto beaten = scores.lt(own).logical_or_(scores.eq(own).logical_and_(classes.gt(column)));
  const auto position = beaten.sum(1).neg_().add_(scores.size(1) - 1);
  const auto samples = static_cast<double>(scores.size(0));
  auto in_top = [&](int64_t k) { return position.lt(k).sum().to(at::kDouble); };
  sums_.add_(at::stack({sums_.new_full({}, samples), loss.detach().to(at::kDouble).mul(samples),
                        in_top(1), in_top(3), in_top(5)}));
}

MetricSums DeviceSums::own() const {
  const auto host = sums_.cpu();
  MetricSums::Vector vector{};
  const auto* values = host.const_data_ptr<double>();
  std::copy(values, values + vector.size(), vector.begin());
  return MetricSums::from(vector);
}

MetricSums DeviceSums::take(Group& group) {
  group.sum(sums_);
  const auto all = own();
  sums_.zero_();
  return all;
}

}  // namespace ddprun::trainer
