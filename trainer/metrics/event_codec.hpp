// The encoding of TensorBoard's event files: TFRecord frames (u64 length, masked CRC32C of it,
// data, masked CRC32C of the data; little-endian) around Event messages in protobuf's wire format.
// Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace ddprun::trainer {

/// CRC-32C (Castagnoli), as in RFC 3720; and TFRecord's masked form: rotated right by 15, plus a
/// constant.
[[nodiscard]] std::uint32_t crc32c(std::string_view bytes);
[[nodiscard]] std::uint32_t masked_crc32c(std::string_view bytes);

[[nodiscard]] std::string tf_record(std::string_view data);

struct EventTime {
  double wall_time = 0;  // seconds since 1970
  std::int64_t step = 0;
};
using Scalar = std::pair<std::string_view, float>;  // tag, value

/// Event messages: `file_version`, the first of every file; the start of a session, which makes
/// readers discard what an earlier session wrote for this and later steps; scalars.
[[nodiscard]] std::string version_event(const EventTime& time);
[[nodiscard]] std::string start_event(const EventTime& time);
[[nodiscard]] std::string scalars_event(const EventTime& time, std::span<const Scalar> scalars);

}  // namespace ddprun::trainer
