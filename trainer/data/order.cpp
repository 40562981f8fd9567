#include "trainer/data/order.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "trainer/error.hpp"

namespace ddprun::trainer {

std::vector<std::uint32_t> epoch_permutation(const EpochKey& key, std::uint32_t count) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  CounterStream random(key.stream());
  for (std::uint32_t left = count; left > 1; --left) {
    std::swap(order[left - 1], order[random.below(left)]);
  }
  return order;
}

Share share_of(std::size_t count, const Place& place) {
  if (place.world < 1 || place.rank < 0 || place.rank >= place.world) {
    throw TrainerError("rank " + std::to_string(place.rank) + " does not exist in a world of " +
                       std::to_string(place.world) + "; check RANK and WORLD_SIZE");
  }
  const auto rank = static_cast<std::size_t>(place.rank);
  const auto world = static_cast<std::size_t>(place.world);
  const std::size_t each = count / world;
  const std::size_t more = count % world;
  const std::size_t begin = rank * each + std::min(rank, more);
  return {begin, begin + each + (rank < more ? 1 : 0)};
}

DataOrder::DataOrder(const OrderOptions& options) : options_(options) {
  if (options.samples == 0)
    throw TrainerError("the training set is empty; check --data-dir and --limit-train");
  if (options.batch == 0)
    throw TrainerError("the batch size is 0; --batch-size must be at least 1");
}

RankBatch DataOrder::rank_batch(std::uint64_t step, const Place& place) {
  const auto all = global_batch(step);
  const Share share = share_of(all.size(), place);
  RankBatch batch{epoch_of(step), batch_of(step), all.subspan(share.begin, share.size()),
                  share.size(),   all.size(),     0.0};
  if (share.size() == 0) batch.ids = all.first(1);
  batch.loss_scale =
      static_cast<double>(batch.counted) * place.world / static_cast<double>(all.size());
  return batch;
}

std::span<const std::uint32_t> DataOrder::global_batch(std::uint64_t step) {
  const std::uint64_t epoch = epoch_of(step);
  if (order_.empty() || epoch != drawn_epoch_) {
    order_ = epoch_permutation({options_.seed, epoch}, options_.samples);
    drawn_epoch_ = epoch;
  }
  const std::size_t begin = batch_of(step) * options_.batch;
  const std::size_t count = std::min<std::size_t>(options_.batch, order_.size() - begin);
  return std::span<const std::uint32_t>(order_).subspan(begin, count);
}

std::uint64_t DataOrder::batches_per_epoch() const {
  return (std::uint64_t{options_.samples} + options_.batch - 1) / options_.batch;
}

std::uint64_t DataOrder::epoch_of(std::uint64_t step) const {
  return step / batches_per_epoch();
}

std::uint64_t DataOrder::batch_of(std::uint64_t step) const {
  return step % batches_per_epoch();
}

std::uint64_t DataOrder::samples_before(std::uint64_t step) const {
  return epoch_of(step) * options_.samples + batch_of(step) * options_.batch;
}

EpochKey DataOrder::key_of(std::uint64_t step) const {
  return {options_.seed, epoch_of(step)};
}

}  // namespace ddprun::trainer
