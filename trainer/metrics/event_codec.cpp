#include "trainer/metrics/event_codec.hpp"

#include <bit>
#include <boost/crc.hpp>
#include <concepts>

namespace ddprun::trainer {
namespace {

template <std::unsigned_integral Value>
std::string little_endian(Value value) {
  std::string text;
  for (std::size_t i = 0; i < sizeof(Value); ++i, value = static_cast<Value>(value >> 8U)) {
    text.push_back(static_cast<char>(value & 0xFFU));
  }
  return text;
}

// Protobuf: a field is (number << 3 | wire type), then its value.
enum class Wire : std::uint64_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

std::string varint(std::uint64_t value) {
  std::string text;
  for (; value >= 0x80U; value >>= 7U) text.push_back(static_cast<char>((value & 0x7FU) | 0x80U));
  text.push_back(static_cast<char>(value));
  return text;
}

std::string field(std::uint64_t number, Wire wire) {
  return varint(number << 3U | static_cast<std::uint64_t>(wire));
}

std::string bytes_field(std::uint64_t number, std::string_view bytes) {
  return field(number, Wire::kBytes) + varint(bytes.size()) + std::string(bytes);
}

/// Event.wall_time = 1 (double), Event.step = 2 (int64).
std::string event_head(const EventTime& time) {
  return field(1, Wire::kFixed64) + little_endian(std::bit_cast<std::uint64_t>(time.wall_time)) +
         field(2, Wire::kVarint) + varint(static_cast<std::uint64_t>(time.step));
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  boost::crc_optimal<32, 0x1EDC6F41U, 0xFFFFFFFFU, 0xFFFFFFFFU, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

std::uint32_t masked_crc32c(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xA282EAD8U;
}

std::string tf_record(std::string_view data) {
  const std::string length = little_endian(std::uint64_t{data.size()});
  return length + little_endian(masked_crc32c(length)) + std::string(data) +
         little_endian(masked_crc32c(data));
}

std::string version_event(const EventTime& time) {
  return event_head(time) + bytes_field(3, "brain.Event:2");  // Event.file_version
}

std::string start_event(const EventTime& time) {
  constexpr std::uint64_t kSessionStart = 1;
  const std::string log = field(1, Wire::kVarint) + varint(kSessionStart);  // SessionLog.status
  return event_head(time) + bytes_field(7, log);                            // Event.session_log
}

std::string scalars_event(const EventTime& time, std::span<const Scalar> scalars) {
  std::string summary;
  for (const auto& [tag, value] : scalars) {
    const std::string entry = bytes_field(1, tag) +  // Summary.Value.tag, .simple_value
                              field(2, Wire::kFixed32) +
                              little_endian(std::bit_cast<std::uint32_t>(value));
    summary += bytes_field(1, entry);  // Summary.value
  }
  return event_head(time) + bytes_field(5, summary);  // Event.summary
}

}  // namespace ddprun::trainer
