#include "rendezvous/coordinator/link.hpp"

#include <sys/socket.h>

namespace ddprun::coordinator {

namespace {

// Sent frames are removed from the front once there are more than this.
constexpr std::size_t kCompactThreshold = 64;

}  // namespace

void Outbox::push(SharedFrame frame) {
  if (first_ > kCompactThreshold && first_ > frames_.size() / 2) {
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

std::size_t Outbox::gather(std::span<iovec> parts) const {
  std::size_t count = 0;
  std::size_t skip = offset_;
  for (std::size_t at = first_; at < frames_.size() && count < parts.size(); ++at) {
    const std::string& bytes = frames_[at]->bytes;
    // sendmsg does not write to it, but its parameter is not const.
    parts[count++] = {const_cast<char*>(bytes.data()) + skip, bytes.size() - skip};
    skip = 0;
  }
  return count;
}

void Outbox::sent(std::size_t bytes) {
  offset_ += bytes;
  while (!empty() && offset_ >= frames_[first_]->bytes.size()) {
    offset_ -= frames_[first_]->bytes.size();
    bytes_ -= frames_[first_]->bytes.size();
    frames_[first_++].reset();
  }
  if (empty()) clear();
}

round::Peer peer_of(const Link& link) {
  sockaddr_in6 own{};
  socklen_t length = sizeof(own);
  // An accepted socket has a local address.
  (void)::getsockname(link.fd, reinterpret_cast<sockaddr*>(&own), &length);
  return {net::address_text(link.from), net::address_text(own)};
}

}  // namespace ddprun::coordinator
