#include "agent/worker_link/packet.hpp"

#include <algorithm>
#include <limits>

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

std::optional<Packet> parse_joined(std::span<const std::uint8_t> content) {
  if (content.size() != sizeof(std::uint32_t)) return std::nullopt;
  std::uint32_t round = 0;
  for (std::size_t i = 0; i < content.size(); ++i) round |= std::uint32_t{content[i]} << (8 * i);
  if (round > std::uint32_t{std::numeric_limits<int>::max()}) return std::nullopt;
  return Joined{Round(static_cast<int>(round))};
}

}  // namespace

std::optional<Packet> parse_packet(std::span<const std::uint8_t> bytes) {
  if (bytes.size() < kPacketHeaderBytes || bytes[0] != kLinkVersion) return std::nullopt;
  const auto content = bytes.subspan(kPacketHeaderBytes);
  const auto kind = static_cast<PacketKind>(bytes[1]);
  if (kind == PacketKind::kCheckpoint) return parse_checkpoint(content);
  if (kind == PacketKind::kJoined) return parse_joined(content);
  if (!content.empty()) return std::nullopt;
  if (kind == PacketKind::kHello) return Hello{};
  if (kind == PacketKind::kLook) return Look{};
  if (kind == PacketKind::kReady) return Ready{};
  if (kind == PacketKind::kSurvives) return Survives{};
  return std::nullopt;
}

std::optional<std::vector<std::uint8_t>> round_packet(const PushedRound& round) {
  std::vector<std::uint8_t> packet{kLinkVersion, static_cast<std::uint8_t>(PacketKind::kRound)};
  const auto number = static_cast<std::uint32_t>(round.number.value());
  for (unsigned shift = 0; shift < 32; shift += 8) {
    packet.push_back(static_cast<std::uint8_t>(number >> shift));
  }
  packet.push_back(1);
  for (const std::string& variable : to_block(round.variables)) {
    packet.insert(packet.end(), variable.begin(), variable.end());
    packet.push_back(0);
    if (packet.size() > kRoundPacketBytesMax) return std::nullopt;
  }
  return packet;
}

}  // namespace ddprun::worker_link
