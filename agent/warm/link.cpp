#include "agent/warm/link.hpp"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "agent/proc/program.hpp"
#include "agent/warm/core/stock.hpp"

namespace ddprun::warm {

namespace asio = boost::asio;

struct Link::Shared {
  explicit Shared(const asio::any_io_executor& executor) : socket(executor) {}
  asio::posix::stream_descriptor socket;
  Handler handler{};
};

Result<Link::Pair> Link::make(const asio::any_io_executor& executor) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return system_refused("cannot make a socket", errno);
  }
  auto shared = std::make_shared<Shared>(executor);
  boost::system::error_code why;
  shared->socket.assign(ends[0], why);
  if (!why) return Pair{std::unique_ptr<Link>(new Link(std::move(shared))), ends[1]};
  ::close(ends[0]);
  ::close(ends[1]);
  return system_refused("cannot watch a socket", why.value());
}

Link::~Link() {
  shared_->handler = nullptr;
  shared_->socket.close();
}

bool Link::send(std::string_view text, const std::vector<int>& descriptors) {
  iovec data{const_cast<char*>(text.data()), text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kDescriptorsMax)> space{};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  const std::size_t bytes = sizeof(int) * descriptors.size();
  if (descriptors.size() > kDescriptorsMax) return false;
  if (bytes > 0) {
    message.msg_control = space.data();
    message.msg_controllen = CMSG_SPACE(bytes);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(bytes);
    std::memcpy(CMSG_DATA(header), descriptors.data(), bytes);
  }
  const int socket = shared_->socket.native_handle();
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(text.size());
}

void Link::receive(Handler handler) {
  shared_->handler = std::move(handler);
  wait(shared_);
}

void Link::wait(std::shared_ptr<Shared> shared) {
  asio::posix::stream_descriptor& socket = shared->socket;
  socket.async_wait(asio::posix::stream_descriptor::wait_read, [shared](const auto& why) {
    if (why || !shared->handler) return;
    std::array<char, kMessageBytesMax> buffer{};
    const ssize_t bytes =
        ::recv(shared->socket.native_handle(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    const bool again = bytes < 0 && (errno == EAGAIN || errno == EINTR);
    const Handler handler = shared->handler;  // it may destroy the link
    if (bytes > 0) {
      handler(std::string(buffer.data(), static_cast<std::size_t>(bytes)));
    } else if (!again) {
      shared->handler = nullptr;
      return handler(std::nullopt);
    }
    if (shared->handler) wait(shared);
  });
}

}  // namespace ddprun::warm
