#include "trainer/checkpoint/digest.hpp"

#include "tests/support/catch.hpp"

using namespace ddprun::trainer;

TEST_CASE("the digest is XXH64") {
  // Values of the reference implementation.
  CHECK(Digest().value() == 0xEF46DB3751D8E999U);
  CHECK(Digest().update("a").value() == 0xD24EC4F1A98C6E5BU);
  CHECK(Digest().update("abc").value() == 0x44BC2CF5AD770999U);
  CHECK(Digest()
            .update("No"
                    "body inspects the spammish repetition")
            .value() == 0xFBCEA83C8A378BF1U);
}

TEST_CASE("the digest does not depend on how the input is split") {
  std::string text;
  for (int i = 0; i < 200; ++i) text.push_back(static_cast<char>(i * 37));
  const auto whole = Digest().update(text).value();
  for (std::size_t portion = 1; portion < 70; ++portion) {
    Digest digest;
    for (std::size_t at = 0; at < text.size(); at += portion)
      digest.update(text.substr(at, portion));
    REQUIRE(digest.value() == whole);
  }
}
