#include "trainer/data/sample_log.hpp"

#include "tests/support/catch.hpp"
#include "tests/trainer_data/temporary_folder.hpp"

using namespace ddprun::trainer;

namespace {

SampleDigest digest_of_step(DataOrder& order, std::uint64_t step, int world) {
  SampleDigest sum;
  for (int rank = 0; rank < world; ++rank) {
    const RankBatch batch = order.rank_batch(step, {rank, world});
    sum += digest_of(batch.ids.first(batch.counted));
  }
  return sum;
}

}  // namespace

TEST_CASE("the digests of all ranks have the same sum for every world size") {
  DataOrder order({208, 16, 1});
  for (std::uint64_t step = 0; step < 2 * order.batches_per_epoch(); ++step) {
    const SampleDigest alone = digest_of_step(order, step, 1);
    for (const int world : {2, 3, 7, 20}) REQUIRE(digest_of_step(order, step, world) == alone);
  }
}

TEST_CASE("a skipped, a repeated and a replaced sample change the digest") {
  const std::vector<std::uint32_t> ids{4, 8, 15, 16};
  CHECK_FALSE(digest_of(ids) == digest_of(std::vector<std::uint32_t>{4, 8, 15}));
  CHECK_FALSE(digest_of(ids) == digest_of(std::vector<std::uint32_t>{4, 8, 15, 15}));
  CHECK_FALSE(digest_of(ids) == digest_of(std::vector<std::uint32_t>{4, 8, 15, 23}));
  CHECK(digest_of(ids) == digest_of(std::vector<std::uint32_t>{16, 15, 8, 4}));
  CHECK_FALSE(digest_of(std::vector<std::uint32_t>{0}) == digest_of({}));
}

TEST_CASE("a log has one header and one line per step, across restarts") {
  const TemporaryFolder folder;
  DataOrder order({10, 4, 1});
  SampleLog(folder / "log.csv").record(1, {0, 2}, order.rank_batch(1, {0, 2}));
  SampleLog(folder / "log.csv").record(2, {1, 3}, order.rank_batch(2, {1, 3}));
  const std::string digest1 = std::to_string(digest_of(order.rank_batch(1, {0, 2}).ids).sum);
  const std::string digest2 = std::to_string(digest_of(order.rank_batch(2, {1, 3}).ids).sum);
  CHECK(content_of(folder / "log.csv") == "step,epoch,batch,rank,world,count,digest\n1,0,1,0,2,2," +
                                              digest1 + "\n2,0,2,1,3,1," + digest2 + "\n");
}

TEST_CASE("a filler is not logged as used") {
  const TemporaryFolder folder;
  DataOrder order({2, 2, 1});
  SampleLog(folder / "log.csv").record(0, {4, 5}, order.rank_batch(0, {4, 5}));
  CHECK_THAT(content_of(folder / "log.csv"), ContainsSubstring("\n0,0,0,4,5,0,0\n"));
}
