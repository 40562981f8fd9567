// Which processes take part as rank 0: keys as torch 2.11 and 2.15 set them, and keys like them.
#include "rendezvous/store/rank_zero.hpp"

#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::store;

namespace {

constexpr ConnectionId kOne{1};
constexpr ConnectionId kTwo{2};

}  // namespace

TEST_CASE("rank 0 is known by the keys of Gloo and NCCL, on any device and interface") {
  CHECK(announces_rank_zero("/default_pg/0//cpu//0/0"));
  CHECK(announces_rank_zero("/default_pg/0//cpu//12/0"));
  CHECK(announces_rank_zero("/default_pg/0//cuda//0"));
  CHECK(announces_rank_zero("/default_pg/0//xpu//31"));
}

TEST_CASE("other ranks, subgroups and keys of applications are not rank 0") {
  CHECK_FALSE(announces_rank_zero("/default_pg/0//cpu//0/1"));
  CHECK_FALSE(announces_rank_zero("/default_pg/0//cpu//0/10"));
  CHECK_FALSE(announces_rank_zero("/default_pg/0//cpu//0/00"));
  CHECK_FALSE(announces_rank_zero("/default_pg/0//cpu//0/"));
  CHECK_FALSE(announces_rank_zero("/default_pg/0//1//cpu//0/0"));  // new_group([0])
  CHECK_FALSE(announces_rank_zero("/default_pg/0//5f//cuda//0"));  // the same, with a hash
  CHECK_FALSE(announces_rank_zero("/default_pg/0//cuda//0:1"));    // send and receive
  CHECK_FALSE(announces_rank_zero("/default_pg/0//cpu//0/0/more"));
  CHECK_FALSE(announces_rank_zero("/default_pg/0//done"));
  CHECK_FALSE(announces_rank_zero("/default_pg/0//done/0"));
  CHECK_FALSE(announces_rank_zero("/default_pg/0////0"));
  CHECK_FALSE(announces_rank_zero("/default_pg/0//"));
  CHECK_FALSE(announces_rank_zero("/default_pg/store_based_barrier_key:0:last_worker"));
  CHECK_FALSE(announces_rank_zero("/mine/0/0"));
  CHECK_FALSE(announces_rank_zero(""));
}

TEST_CASE("two processes that are rank 0 at the same time are told, each further one again") {
  RankZero rank;
  CHECK_FALSE(rank.announced(kOne, 100));
  CHECK(rank.announced(kTwo, 200) == RankClaims{100, 200});
  CHECK(rank.announced(ConnectionId{3}, 300) == RankClaims{100, 300});
}

TEST_CASE("a process may be rank 0 again, over the same or another connection") {
  RankZero rank;
  CHECK_FALSE(rank.announced(kOne, 100));
  CHECK_FALSE(rank.announced(kOne, 100));
  CHECK_FALSE(rank.announced(kTwo, 100));
  rank.disconnected(kOne);  // the old store of the process, collected late
  CHECK(rank.announced(ConnectionId{3}, 200) == RankClaims{100, 200});
}

TEST_CASE("a process that has taken the place of one that is gone is not told") {
  RankZero rank;
  CHECK_FALSE(rank.announced(kOne, 100));
  rank.disconnected(kTwo);
  rank.disconnected(kOne);
  CHECK_FALSE(rank.announced(kTwo, 200));
}
