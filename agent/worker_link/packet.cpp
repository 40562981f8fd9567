#include "agent/worker_link/packet.hpp"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>

#include "agent/proc/leftovers.hpp"

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

// A socket gets its name when it listens: who finds one that refuses may remove it.
bool bind_and_listen(int socket, const std::string& path) {
  const std::string unfinished = path + ".new";
  const auto address = unix_address(unfinished);
  if (!address) errno = ENAMETOOLONG;
  if (!address) return false;
  const auto* name = reinterpret_cast<const sockaddr*>(&*address);
  if (::bind(socket, name, sizeof(*address)) != 0) return false;
  if (::listen(socket, kBacklog) == 0 && ::rename(unfinished.c_str(), path.c_str()) == 0) {
    return true;
  }
  const int error = errno;
  ::unlink(unfinished.c_str());
  errno = error;
  return false;
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

Result<int> listen(const std::string& path) {
  const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket >= 0 && bind_and_listen(socket, path)) return socket;
  const int error = errno;
  if (socket >= 0) ::close(socket);
  return Error(ErrorKind::kSystem,
               "cannot listen at the Unix socket " + path + ": " + ::strerror(error));
}

std::optional<int> peer_of(int socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  const bool ours = peer.pid > 0 && (peer.uid == ::geteuid() || peer.uid == 0);
  return ours ? std::optional<int>(peer.pid) : std::nullopt;
}

// Descriptors that do not fit are not received.
Received receive(int socket) {
  std::array<std::uint8_t, kPacketBytesMax + 1> content{};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  iovec into{content.data(), content.size()};
  msghdr message{};
  message.msg_iov = &into;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = CMSG_LEN(sizeof(int));  // no room for a second one
  const ssize_t count = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  Received received;
  if (count < 0) {
    const bool later = errno == EAGAIN || errno == EINTR;
    received.state = later ? Received::State::kNothing : Received::State::kEnd;
    return received;
  }
  received.state = count == 0 ? Received::State::kEnd : Received::State::kPacket;
  for (cmsghdr* item = CMSG_FIRSTHDR(&message); item != nullptr;
       item = CMSG_NXTHDR(&message, item)) {
    if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS) continue;
    ::memcpy(&received.page, CMSG_DATA(item), sizeof(received.page));
  }
  const bool whole = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
  if (whole) received.packet = parse_packet({content.data(), static_cast<std::size_t>(count)});
  return received;
}

}  // namespace ddprun::worker_link
