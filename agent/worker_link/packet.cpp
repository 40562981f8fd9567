#include "agent/worker_link/packet.hpp"

#include <algorithm>

namespace ddprun::worker_link {

namespace {

std::optional<Packet> parse_checkpoint(std::span<const std::uint8_t> content) {
  constexpr std::size_t kStepBytes = sizeof(std::int64_t);
  if (content.size() <= kStepBytes || content.size() > kStepBytes + kPathBytesMax) {
    return std::nullopt;
  }
  std::uint64_t step = 0;
  for (std::size_t i = 0; i < kStepBytes; ++i) step |= std::uint64_t{content[i]} << (8 * i);
  const auto path = content.subspan(kStepBytes);
  if (std::find(path.begin(), path.end(), 0) != path.end()) return std::nullopt;
  return Checkpoint{static_cast<std::int64_t>(step), std::string(path.begin(), path.end())};
}

}  // namespace

std::optional<Packet> parse_packet(std::span<const std::uint8_t> bytes) {
  if (bytes.size() < kPacketHeaderBytes || bytes[0] != kLinkVersion) return std::nullopt;
  const auto content = bytes.subspan(kPacketHeaderBytes);
  const auto kind = static_cast<PacketKind>(bytes[1]);
  if (kind == PacketKind::kCheckpoint) return parse_checkpoint(content);
  if (!content.empty()) return std::nullopt;
  if (kind == PacketKind::kHello) return Hello{};
  if (kind == PacketKind::kLook) return Look{};
  if (kind == PacketKind::kReady) return Ready{};
  return std::nullopt;
}

}  // namespace ddprun::worker_link
