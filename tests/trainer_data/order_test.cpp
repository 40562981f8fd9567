#include "trainer/data/order.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "tests/support/catch.hpp"
#include "trainer/data/sample_log.hpp"
#include "trainer/error.hpp"

using namespace ddprun::trainer;

namespace {

std::vector<std::uint32_t> sorted(std::vector<std::uint32_t> ids) {
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::vector<std::uint32_t> all_ids(std::uint32_t count) {
  std::vector<std::uint32_t> ids(count);
  std::iota(ids.begin(), ids.end(), 0U);
  return ids;
}

/// The samples that all ranks use in one step, in rank order, without fillers.
std::vector<std::uint32_t> used_by_world(DataOrder& order, std::uint64_t step, int world) {
  std::vector<std::uint32_t> ids;
  for (int rank = 0; rank < world; ++rank) {
    const RankBatch batch = order.rank_batch(step, {rank, world});
    ids.insert(ids.end(), batch.ids.begin(),
               batch.ids.begin() + static_cast<std::ptrdiff_t>(batch.counted));
  }
  return ids;
}

}  // namespace

TEST_CASE("the order of an epoch is the same on every machine") {
  // Computed by an independent Python program from the definitions in random.hpp and order.hpp.
  CHECK(epoch_permutation({0, 0}, 10) == std::vector<std::uint32_t>{4, 7, 0, 5, 9, 3, 6, 2, 8, 1});
  CHECK(epoch_permutation({42, 7}, 10) == std::vector<std::uint32_t>{0, 2, 1, 7, 5, 8, 6, 4, 9, 3});
}

TEST_CASE("an order holds every sample exactly once") {
  for (const std::uint32_t count : {1U, 2U, 3U, 1000U, 50'000U}) {
    CHECK(sorted(epoch_permutation({1, 2}, count)) == all_ids(count));
  }
}

TEST_CASE("two epochs differ, and so do two seeds; equal keys give equal orders") {
  std::set<std::vector<std::uint32_t>> orders;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    for (std::uint64_t epoch = 0; epoch < 10; ++epoch)
      orders.insert(epoch_permutation({seed, epoch}, 100));
  }
  CHECK(orders.size() == 100);
  CHECK(epoch_permutation({3, 4}, 50'000) == epoch_permutation({3, 4}, 50'000));
}

TEST_CASE("streams of adjacent epochs do not overlap") {
  std::set<std::uint64_t> drawn;
  for (std::uint64_t epoch = 0; epoch < 50; ++epoch) {
    CounterStream stream(EpochKey{0, epoch}.stream());
    for (int i = 0; i < 1000; ++i) drawn.insert(stream.next());
  }
  CHECK(drawn.size() == 50'000);
}

TEST_CASE("every sample is equally likely at every position") {
  std::array<std::array<int, 5>, 5> seen{};
  for (std::uint64_t epoch = 0; epoch < 20'000; ++epoch) {
    const auto order = epoch_permutation({9, epoch}, 5);
    for (std::size_t i = 0; i < 5; ++i) ++seen[i][order[i]];
  }
  for (const auto& position : seen) {
    for (const int count : position) CHECK(std::abs(count - 4000) < 300);  // 5 standard deviations
  }
}

TEST_CASE("any world size uses each sample exactly once per epoch, in the global order") {
  for (const std::uint32_t samples : {1U, 7U, 208U, 1000U}) {
    for (const std::uint32_t batch : {1U, 3U, 128U}) {
      DataOrder order({samples, batch, 5});
      for (const int world : {1, 2, 3, 5, 8, 150}) {
        std::vector<std::uint32_t> used;
        for (std::uint64_t step = 0; step < order.batches_per_epoch(); ++step) {
          const auto step_ids = used_by_world(order, step, world);
          used.insert(used.end(), step_ids.begin(), step_ids.end());
        }
        REQUIRE(used == epoch_permutation({5, 0}, samples));
      }
    }
  }
}

TEST_CASE("a change of the world size at any step skips and repeats no sample") {
  const OrderOptions options{208, 16, 3};
  DataOrder undisturbed(options);
  const std::uint64_t total = 2 * undisturbed.batches_per_epoch();
  for (std::uint64_t change = 0; change <= total; ++change) {
    DataOrder before(options);
    DataOrder after(options);  // a new process that knows only the step
    for (std::uint64_t step = 0; step < total; ++step) {
      const bool changed = step >= change;
      const auto ids = used_by_world(changed ? after : before, step, changed ? 3 : 4);
      const auto expected = undisturbed.global_batch(step);
      REQUIRE(std::equal(ids.begin(), ids.end(), expected.begin(), expected.end()));
    }
  }
}

TEST_CASE("a resume in mid-epoch uses exactly the rest of that epoch, then the next one") {
  const OrderOptions options{1000, 64, 11};
  DataOrder resumed(options);
  const std::uint64_t cursor = 2 * resumed.batches_per_epoch() + 5;  // third epoch, 5 batches done
  std::vector<std::uint32_t> rest;
  for (auto step = cursor; resumed.epoch_of(step) == 2; ++step) {
    const auto ids = resumed.global_batch(step);
    rest.insert(rest.end(), ids.begin(), ids.end());
  }
  auto expected = epoch_permutation({11, 2}, 1000);
  expected.erase(expected.begin(), expected.begin() + 5 * 64);
  CHECK(rest == expected);
  const auto next = resumed.global_batch(3 * resumed.batches_per_epoch());
  CHECK(std::equal(next.begin(), next.end(), epoch_permutation({11, 3}, 1000).begin()));
}

TEST_CASE("the step alone determines the epoch: the order of calls does not matter") {
  DataOrder order({100, 30, 1});
  const auto copy = [&order](std::uint64_t step) {
    const auto ids = order.global_batch(step);
    return std::vector<std::uint32_t>(ids.begin(), ids.end());
  };
  const auto first = copy(1);
  (void)copy(9);
  CHECK(copy(1) == first);
  CHECK(copy(1 + 4) != first);  // same place in the next epoch
}

TEST_CASE("the last batch is short, neither dropped nor padded") {
  DataOrder order({50'000, 128, 0});
  CHECK(order.batches_per_epoch() == 391);
  CHECK(order.global_batch(389).size() == 128);
  CHECK(order.global_batch(390).size() == 80);
  CHECK(order.samples_before(391) == 50'000);
  CHECK(order.samples_before(392) == 50'128);
}

TEST_CASE("loss scales convert the mean over ranks to the mean over samples") {
  DataOrder order({10, 7, 0});
  for (const std::uint64_t step : {0U, 1U}) {
    for (const int world : {1, 2, 3, 4, 6}) {
      double weight = 0;  // of all samples under an average over ranks: each one / global count
      for (int rank = 0; rank < world; ++rank) {
        const RankBatch batch = order.rank_batch(step, {rank, world});
        weight += batch.loss_scale / world;
        if (batch.counted == 0) continue;
        const double each = batch.loss_scale / world / static_cast<double>(batch.counted);
        CHECK(each == Approx(1.0 / static_cast<double>(batch.global_count)));
      }
      CHECK(weight == Approx(1.0));
    }
  }
  CHECK(DataOrder({128, 64, 0}).rank_batch(0, {1, 2}).loss_scale == 1.0);
}

TEST_CASE("a rank without samples computes a filler with weight 0") {
  DataOrder order({2, 2, 0});
  const RankBatch empty = order.rank_batch(0, {2, 3});
  CHECK(empty.ids.size() == 1);
  CHECK(empty.counted == 0);
  CHECK(empty.loss_scale == 0.0);
  CHECK(order.rank_batch(0, {0, 3}).counted == 1);
}

TEST_CASE("shares differ by at most one sample and rank 0 has a largest one") {
  for (std::size_t count = 0; count < 50; ++count) {
    for (int world = 1; world < 12; ++world) {
      std::size_t begin = 0;
      for (int rank = 0; rank < world; ++rank) {
        const Share share = share_of(count, {rank, world});
        REQUIRE(share.begin == begin);
        begin = share.end;
        REQUIRE(share.size() <= share_of(count, {0, world}).size());
        REQUIRE(share.size() + 1 >= share_of(count, {0, world}).size());
      }
      REQUIRE(begin == count);
    }
  }
}

TEST_CASE("invalid orders are refused with a sentence") {
  CHECK_THROWS_WITH(DataOrder({0, 128, 0}), ContainsSubstring("training set is empty"));
  CHECK_THROWS_WITH(DataOrder({10, 0, 0}), ContainsSubstring("--batch-size"));
  DataOrder order({10, 5, 0});
  CHECK_THROWS_WITH(order.rank_batch(0, {2, 2}),
                    ContainsSubstring("rank 2 does not exist in a world of 2"));
  CHECK_THROWS_AS(order.rank_batch(0, {-1, 2}), TrainerError);
  CHECK_THROWS_AS(order.rank_batch(0, {0, 0}), TrainerError);
}
