#include "agent/worker_link/listen.hpp"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>

#include "agent/worker_link/limits.hpp"

namespace ddprun::worker_link {

namespace {

// A socket gets its name when it listens: who finds one that refuses may remove it.
bool bind_and_listen(int socket, const std::string& path) {
  const std::string unfinished = path + ".new";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (unfinished.size() >= sizeof(address.sun_path)) {
    errno = ENAMETOOLONG;
    return false;
  }
  ::memcpy(address.sun_path, unfinished.data(), unfinished.size());
  const auto* name = reinterpret_cast<const sockaddr*>(&address);
  if (::bind(socket, name, sizeof(address)) != 0) return false;
  if (::listen(socket, kBacklog) == 0 && ::rename(unfinished.c_str(), path.c_str()) == 0) {
    return true;
  }
  const int error = errno;
  ::unlink(unfinished.c_str());
  errno = error;
  return false;
}

}  // namespace

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
