#include "rendezvous/coordinator/link.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace ddprun::coordinator {

namespace {

constexpr std::size_t kPartsAtOnce = 64;

}  // namespace

void Outbox::push(SharedFrame frame) {
  if (first_ > kPartsAtOnce && first_ > frames_.size() / 2) {
    frames_.erase(frames_.begin(), frames_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }
  bytes_ += frame->bytes.size();
  frames_.push_back(std::move(frame));
}

std::size_t Outbox::behind() const {
  return empty() ? 0 : bytes_ - frames_[first_]->bytes.size();
}

void Outbox::clear() {
  std::vector<SharedFrame>().swap(frames_);
  first_ = offset_ = bytes_ = 0;
}

Outbox::Sent Outbox::flush(int socket) {
  while (!empty()) {
    std::array<iovec, kPartsAtOnce> parts;
    std::size_t count = 0;
    std::size_t skip = offset_;
    for (std::size_t at = first_; at < frames_.size() && count < kPartsAtOnce; ++at) {
      const std::string& bytes = frames_[at]->bytes;
      // sendmsg does not write to it, but its parameter is not const.
      parts[count++] = {const_cast<char*>(bytes.data()) + skip, bytes.size() - skip};
      skip = 0;
    }
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = count;
    const ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return errno == EAGAIN ? Sent::kSome : Sent::kBroken;
    offset_ += static_cast<std::size_t>(sent);
    while (!empty() && offset_ >= frames_[first_]->bytes.size()) {
      offset_ -= frames_[first_]->bytes.size();
      bytes_ -= frames_[first_]->bytes.size();
      frames_[first_++].reset();
    }
  }
  clear();
  return Sent::kAll;
}

Link::Link(std::uint64_t number, int socket, const sockaddr_storage& peer)
    : id(number), fd(socket) {
  std::memcpy(&from, &peer, sizeof(from));
}

Link::~Link() {
  if (fd != -1) ::close(fd);
}

std::string address_text(const sockaddr_in6& address) {
  char text[INET6_ADDRSTRLEN] = "?";
  if (address.sin6_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
  } else if (IN6_IS_ADDR_V4MAPPED(&address.sin6_addr)) {
    ::inet_ntop(AF_INET, &address.sin6_addr.s6_addr[12], text, sizeof(text));
  } else {
    ::inet_ntop(AF_INET6, &address.sin6_addr, text, sizeof(text));
  }
  return text;
}

std::string peer_text(const Link& link) {
  const std::string address = address_text(link.from);
  const std::string port = std::to_string(ntohs(link.from.sin6_port));
  return address.find(':') == std::string::npos ? address + ":" + port
                                                : "[" + address + "]:" + port;
}

round::Peer peer_of(const Link& link) {
  sockaddr_in6 own{};
  socklen_t length = sizeof(own);
  // An accepted socket has a local address.
  (void)::getsockname(link.fd, reinterpret_cast<sockaddr*>(&own), &length);
  return {address_text(link.from), address_text(own)};
}

}  // namespace ddprun::coordinator
