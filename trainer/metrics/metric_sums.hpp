// Loss and top-k accuracy as sums: over the batches of a rank, and over ranks with one all-reduce
// (sum) of a short vector of doubles. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ddprun::trainer {

struct Means {
  double loss = 0;
  double top1 = 0;  // fractions, 0 … 1
  double top3 = 0;
  double top5 = 0;
};

/// One batch of a classifier's output: `classes` numbers per sample, row-major.
struct Scores {
  std::span<const float> logits;
  std::span<const std::int64_t> labels;
  std::size_t classes = 10;
};

class MetricSums {
 public:
  static constexpr std::size_t kSize = 5;
  using Vector = std::array<double, kSize>;

  /// `loss_sum` is the sum over the samples, not their mean. A sample is correct in the top k if
  /// fewer than k classes rank higher; ties are broken in favour of the lower class; NaN is never
  /// correct. Throws TrainerError if the sizes do not match.
  void add(const Scores& scores, double loss_sum);
  void add(const MetricSums& other);

  /// For the all-reduce: {samples, loss, top1, top3, top5}.
  [[nodiscard]] Vector vector() const { return {samples_, loss_, top1_, top3_, top5_}; }
  [[nodiscard]] static MetricSums from(const Vector& sums);
  [[nodiscard]] double samples() const { return samples_; }
  /// All zero if nothing was added.
  [[nodiscard]] Means means() const;

 private:
  double samples_ = 0;
  double loss_ = 0;
  double top1_ = 0;
  double top3_ = 0;
  double top5_ = 0;
};

}  // namespace ddprun::trainer
