// Assigns samples to steps and ranks. The order of an epoch is permutation(seed, epoch); a global
// cursor counts committed global batches; batch k of an epoch takes positions kB … (k+1)B-1; rank r
// takes its share of them. A resume or a change of the world size therefore neither skips nor
// repeats a sample. Not thread-safe (caches the last permutation, which it owns). Errors:
// TrainerError.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "trainer/data/random.hpp"

namespace ddprun::trainer {

/// The ids 0 … count-1 in the order of one epoch: a Fisher-Yates shuffle, identical on every
/// machine.
[[nodiscard]] std::vector<std::uint32_t> epoch_permutation(const EpochKey& key,
                                                           std::uint32_t count);

/// The rank and world size in the current round. Ranks may change from round to round.
struct Place {
  int rank = 0;
  int world = 1;
};

/// A contiguous part of [0, count). If the world size does not divide the count, lower ranks take
/// one more, so rank 0's share is empty only if count is 0.
struct Share {
  std::size_t begin = 0;
  std::size_t end = 0;
  [[nodiscard]] std::size_t size() const { return end - begin; }
  friend bool operator==(const Share&, const Share&) = default;
};
[[nodiscard]] Share share_of(std::size_t count, const Place& place);

/// The work of one rank in one step. `ids` is valid until another epoch's permutation is computed.
struct RankBatch {
  std::uint64_t epoch = 0;
  std::uint64_t batch = 0;             // within the epoch, from 0
  std::span<const std::uint32_t> ids;  // this rank's images
  std::size_t counted = 0;             // number of `ids` that count: all, or 0 for a filler
  std::size_t global_count = 0;  // images of all ranks in this step; the last batch may be short
  /// Multiply the local mean loss by this before backward(), because DDP averages over ranks, not
  /// samples: counted * world / global_count, which is exactly 1 if all ranks have equally many
  /// samples.
  double loss_scale = 1.0;
};

struct OrderOptions {
  std::uint32_t samples = 0;  // of the training set, >= 1
  std::uint32_t batch = 0;    // B: samples of all ranks in one step, >= 1
  std::uint64_t seed = 0;
};

class DataOrder {
 public:
  /// Throws TrainerError if `samples` or `batch` is 0.
  explicit DataOrder(const OrderOptions& options);

  /// The share of `place` in global step `step` (0 is the first step of the run). The step alone
  /// determines epoch and position, so that a resume cannot restore one without the other. A rank
  /// without samples, because the last batch is smaller than the world, gets one filler image
  /// with loss_scale 0. Throws TrainerError if rank or world is invalid.
  RankBatch rank_batch(std::uint64_t step, const Place& place);

  /// All ids of a global step, in order.
  std::span<const std::uint32_t> global_batch(std::uint64_t step);

  [[nodiscard]] std::uint64_t batches_per_epoch() const;
  [[nodiscard]] std::uint64_t epoch_of(std::uint64_t step) const;
  [[nodiscard]] std::uint64_t batch_of(std::uint64_t step) const;
  /// Samples consumed by all ranks before `step`; short batches count with their actual size.
  [[nodiscard]] std::uint64_t samples_before(std::uint64_t step) const;
  [[nodiscard]] EpochKey key_of(std::uint64_t step) const;
  [[nodiscard]] const OrderOptions& options() const { return options_; }

 private:
  OrderOptions options_;
  std::uint64_t drawn_epoch_ = 0;
  std::vector<std::uint32_t> order_;  // empty until first used
};

}  // namespace ddprun::trainer
