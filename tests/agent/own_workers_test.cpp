// The sentence about a script that starts its own workers.
#include "agent/report/lines.hpp"

#include "tests/support/catch.hpp"

using namespace ddprun;

TEST_CASE("children of two workers that are both rank 0 are named, with what to try") {
  CHECK(own_workers_text({18387, Rank(0)}, {18390, Rank(1)}, {2}) ==
        "rank 0 is two processes at once, pid 18387 (started by rank 0) and pid 18390 (started by "
        "rank 1): the script seems to start its own workers, as torch.multiprocessing.spawn does, "
        "in each of the 2 that ddprun has started; use --nproc-per-node=1, or remove mp.spawn and "
        "take RANK and LOCAL_RANK from the environment");
}

TEST_CASE("one worker that starts several as rank 0 gets other advice") {
  const std::string text = own_workers_text({100, Rank(0)}, {101, Rank(0)}, {1});
  CHECK(text.find("without a RANK and WORLD_SIZE of their own") != std::string::npos);
  CHECK(text.find("--nproc-per-node=1,") == std::string::npos);
}

TEST_CASE("one such worker on each node gets the advice for several nodes") {
  const std::string text = own_workers_text({100, Rank(0)}, {101}, {1, 2});
  CHECK(text.find("or count rank and world_size over all nodes") != std::string::npos);
  CHECK(text.find("--nproc-per-node=1,") == std::string::npos);
}

TEST_CASE("a process of another node is named by its pid") {
  const std::string text = own_workers_text({100}, {101, Rank(4)}, {4});
  CHECK(text.find("pid 100 and pid 101 (started by rank 4)") != std::string::npos);
}

TEST_CASE("workers themselves and strangers are no script that starts its own workers") {
  CHECK(own_workers_text({100}, {101}, {2}).empty());
  CHECK(own_workers_text({100, Rank(0), true}, {101, Rank(1), true}, {2}).empty());
  CHECK(own_workers_text({100, Rank(0), true}, {101, Rank(0)}, {2}).empty());
  CHECK(own_workers_text({100}, {101, Rank(1), true}, {2}).empty());
}
