#include "trainer/metrics/event_codec.hpp"

#include <array>

#include "tests/support/catch.hpp"

using namespace ddprun::trainer;

TEST_CASE("CRC-32C has the values of RFC 3720 and the standard check value") {
  CHECK(crc32c("123456789") == 0xE3069283U);
  CHECK(crc32c(std::string(32, '\0')) == 0x8A9136AAU);
  CHECK(crc32c(std::string(32, '\xFF')) == 0x62A8AB43U);
  CHECK(crc32c("") == 0U);
}

TEST_CASE("a record is length, its checksum, data, its checksum") {
  const std::string record = tf_record("abc");
  REQUIRE(record.size() == 8 + 4 + 3 + 4);
  CHECK(record.substr(0, 8) == std::string("\x03\0\0\0\0\0\0\0", 8));
  CHECK(record.substr(12, 3) == "abc");
  const auto checksum_at = [&record](std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = 4; i-- > 0;)
      value = value << 8U | static_cast<std::uint8_t>(record[at + i]);
    return value;
  };
  CHECK(checksum_at(8) == masked_crc32c(record.substr(0, 8)));
  CHECK(checksum_at(15) == masked_crc32c("abc"));
}

TEST_CASE("events are protobuf messages with TensorBoard's field numbers") {
  const std::string head("\x09\0\0\0\0\0\0\xF8\x3F\x10\xAC\x02", 12);  // 1: 1.5, 2: 300
  CHECK(version_event({1.5, 300}) == head +
                                         "\x1A\x0D"
                                         "brain.Event:2");
  CHECK(start_event({1.5, 300}) == head + "\x3A\x02\x08\x01");
  const std::array<Scalar, 1> scalars{{{"a", 2.0F}}};
  CHECK(scalars_event({1.5, 300}, scalars) == head + std::string("\x2A\x0A\x0A\x08\x0A\x01"
                                                                 "a\x15\0\0\0\x40",
                                                                 12));
}
