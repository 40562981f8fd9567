// Which sample is used when, and by whom. One rule: the order of an epoch is
// permutation(seed, epoch); a global cursor counts committed global batches; batch k of an epoch
// takes positions kB … (k+1)B-1; rank r takes its part of them. So no sample is lost or doubled by
// a resume or a change of the world size. Not thread-safe (remembers the epoch it drew last); owns
// its permutation. Errors: TrainerError.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "trainer/data/random.hpp"

namespace ddprun::trainer {

/// The ids 0 … count-1 in the order of one epoch: Fisher-Yates, the same on every machine.
[[nodiscard]] std::vector<std::uint32_t> epoch_permutation(const EpochKey& key,
                                                           std::uint32_t count);

/// A rank's place in the world of the present round. Ranks may change from round to round.
struct Place {
  int rank = 0;
  int world = 1;
};

/// A contiguous part of [0, count). Lower ranks take one more when the world does not divide the
/// count, so rank 0 is never empty unless count is 0.
struct Share {
  std::size_t begin = 0;
  std::size_t end = 0;
  [[nodiscard]] std::size_t size() const { return end - begin; }
};
[[nodiscard]] Share share_of(std::size_t count, const Place& place);

/// What one rank computes in one step. `ids` stay valid until the order draws another epoch.
struct RankBatch {
  std::uint64_t epoch = 0;
  std::uint64_t batch = 0;             // within the epoch, from 0
  std::span<const std::uint32_t> ids;  // this rank's pictures
  std::size_t counted = 0;             // how many of `ids` count: all, or 0 for a filler
  std::size_t global_count = 0;  // pictures of all ranks in this step; the last batch may be short
  /// Multiply the local mean loss by this before backward: DDP averages over ranks, not over
  /// samples. counted * world / global_count; exactly 1 when all ranks have equally many.
  double loss_scale = 1.0;
};

struct OrderOptions {
  std::uint32_t samples = 0;  // of the training set, >= 1
  std::uint32_t batch = 0;    // B: samples of all ranks in one step, >= 1
  std::uint64_t seed = 0;
};

class DataOrder {
 public:
  /// Throws TrainerError when `samples` or `batch` is 0.
  explicit DataOrder(const OrderOptions& options);

  /// The part of `place` in global step `step` (0 is the first step of the run: the cursor). The
  /// step alone decides epoch and position, so a resume cannot restore one and forget the other. A
  /// rank that gets nothing, because the last batch is smaller than the world, gets one filler
  /// picture with loss_scale 0. Throws TrainerError when rank or world make no sense.
  RankBatch rank_batch(std::uint64_t step, const Place& place);

  /// All ids of a global step, in order.
  std::span<const std::uint32_t> global_batch(std::uint64_t step);

  [[nodiscard]] std::uint64_t batches_per_epoch() const;
  [[nodiscard]] std::uint64_t epoch_of(std::uint64_t step) const;
  [[nodiscard]] std::uint64_t batch_of(std::uint64_t step) const;
  /// Samples consumed before `step` by all ranks, short batches counted as they are.
  [[nodiscard]] std::uint64_t samples_before(std::uint64_t step) const;
  [[nodiscard]] EpochKey key_of(std::uint64_t step) const;
  [[nodiscard]] const OrderOptions& options() const { return options_; }

 private:
  OrderOptions options_;
  std::uint64_t drawn_epoch_ = 0;
  std::vector<std::uint32_t> order_;  // empty until the first draw
};

}  // namespace ddprun::trainer
