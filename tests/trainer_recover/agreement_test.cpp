#include "trainer/recover/agreement.hpp"

#include "tests/support/catch.hpp"

using namespace ddprun::trainer;

namespace {

constexpr Offer kNew{};

std::optional<int> source_of(const std::vector<Offer>& offers) {
  const auto source = choose_source(offers);
  return source ? std::optional(source->rank) : std::nullopt;
}

Vote vote(const std::vector<std::uint64_t>& digests) {
  return vote_on(digests);
}

}  // namespace

TEST_CASE("the source is the rank that is ahead, of several the lowest") {
  CHECK(source_of({{true, 7}, {true, 7}, {true, 7}}) == 0);
  CHECK(source_of({{true, 7}, {true, 8}, {true, 8}}) == 1);
  CHECK(source_of({kNew, {true, 0}, {true, 0}}) == 1);  // before the first step, too
}

TEST_CASE("a rank that holds no state is never the source") {
  CHECK(source_of({{false, 9}, {true, 7}, kNew}) == 1);
  CHECK(source_of({kNew, kNew}) == std::nullopt);
}

TEST_CASE("nothing is sent only if every rank holds the state of the source") {
  const auto of_all = [](const std::vector<Offer>& offers) {
    return choose_source(offers)->of_all;
  };
  CHECK(of_all({{true, 7, 5}, {true, 7, 5}}));
  CHECK_FALSE(of_all({{true, 7, 5}, {true, 7, 6}}));
  CHECK_FALSE(of_all({{true, 7, 5}, {true, 8, 5}}));
  CHECK_FALSE(of_all({{true, 7, 5}, kNew}));
  CHECK_FALSE(of_all({kNew, {true, 0, 0}}));
  CHECK(choose_source(std::vector<Offer>{{true, 7, 5}, {true, 8, 6}})->digest == 6);
}

TEST_CASE("a rank that holds other bits than the majority is named") {
  CHECK(vote({5, 5, 5}).others.empty());
  CHECK(vote({5, 5, 5}).model == 0);
  CHECK(vote({5, 6, 5}).model == 0);
  CHECK(vote({5, 6, 5}).others == std::vector{1});
  CHECK(vote({6, 5, 5, 5}).model == 1);
  CHECK(vote({6, 5, 5, 5}).others == std::vector{0});
  CHECK(vote({6, 5, 7, 5, 5}).others == std::vector{0, 2});
}

TEST_CASE("without a majority no rank is right") {
  CHECK(vote({5, 6}).model == std::nullopt);
  CHECK(vote({5, 6}).others == std::vector{1});
  CHECK(vote({5, 5, 6, 6}).model == std::nullopt);
  CHECK(vote({5, 6, 7}).model == std::nullopt);
  CHECK(vote({5, 6, 7}).others == std::vector{1, 2});
}
