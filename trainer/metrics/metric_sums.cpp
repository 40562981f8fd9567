#include "trainer/metrics/metric_sums.hpp"

#include <string>

#include "trainer/error.hpp"

namespace ddprun::trainer {
namespace {

/// Number of classes that rank above the correct one. NaN on either side ranks it last.
std::size_t position_of(std::span<const float> row, std::size_t label) {
  const float right = row[label];
  std::size_t before = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const bool behind = right > row[i] || (right == row[i] && label <= i);
    if (!behind) ++before;
  }
  return before;
}

}  // namespace

void MetricSums::add(const Scores& scores, double loss_sum) {
  const std::size_t count = scores.labels.size();
  if (scores.classes == 0 || scores.logits.size() != count * scores.classes) {
    throw TrainerError("metrics: " + std::to_string(scores.logits.size()) +
                       " scores do not match " + std::to_string(count) + " labels");
  }
  for (std::size_t i = 0; i < count; ++i) {
    const auto label = static_cast<std::size_t>(scores.labels[i]);
    if (label >= scores.classes)
      throw TrainerError("metrics: label " + std::to_string(label) + " is not a class");
    const auto position =
        position_of(scores.logits.subspan(i * scores.classes, scores.classes), label);
    top1_ += position < 1 ? 1 : 0;
    top3_ += position < 3 ? 1 : 0;
    top5_ += position < 5 ? 1 : 0;
  }
  samples_ += static_cast<double>(count);
  loss_ += loss_sum;
}

void MetricSums::add(const MetricSums& other) {
  samples_ += other.samples_;
  loss_ += other.loss_;
  top1_ += other.top1_;
  top3_ += other.top3_;
  top5_ += other.top5_;
}

MetricSums MetricSums::from(const Vector& sums) {
  MetricSums result;
  result.samples_ = sums[0];
  result.loss_ = sums[1];
  result.top1_ = sums[2];
  result.top3_ = sums[3];
  result.top5_ = sums[4];
  return result;
}

Means MetricSums::means() const {
  if (samples_ <= 0) return {};
  return {loss_ / samples_, top1_ / samples_, top3_ / samples_, top5_ / samples_};
}

}  // namespace ddprun::trainer
