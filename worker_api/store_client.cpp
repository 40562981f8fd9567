#include "worker_api/store_client.hpp"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "worker_api/link.hpp"

namespace ddprun::worker_link {
namespace {

constexpr std::uint64_t kReplyBytesMax = 1 << 20;
constexpr char kValidate = 0;
constexpr char kCompareSet = 2;
constexpr char kPing = 13;
constexpr std::uint32_t kMagic = 0x3C85F7CE;
constexpr std::uint32_t kNonce = 1;

template <class Integer>
std::string little_endian(Integer value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof(value); ++i) {
    bytes.push_back(static_cast<char>(static_cast<unsigned char>(value >> (8 * i))));
  }
  return bytes;
}

std::string with_length(const std::string& text) {
  return little_endian(std::uint64_t{text.size()}) + text;
}

int left_ms(std::int64_t deadline) {
  const std::int64_t left = (deadline - monotonic_now() + kMillisecond - 1) / kMillisecond;
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, INT_MAX));
}

}  // namespace

StoreClient::~StoreClient() {
  if (socket_ >= 0) ::close(socket_);
}

int StoreClient::connect(const std::string& host, std::uint16_t port) {
  addrinfo wanted = {};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found) != 0) {
    return ENOTCONN;
  }
  int failed = ENOTCONN;
  for (const addrinfo* at = found; at != nullptr && failed != 0; at = at->ai_next) {
    failed = try_address(at->ai_addr, at->ai_addrlen, at->ai_family);
  }
  ::freeaddrinfo(found);
  if (failed != 0) return failed;
  failed = send_all(kValidate + little_endian(kMagic) + kPing + little_endian(kNonce));
  std::uint32_t answered = 0;
  if (failed == 0) failed = receive_all(&answered, sizeof(answered));
  return failed;
}

int StoreClient::try_address(const void* address, std::size_t size, int family) {
  if (socket_ >= 0) ::close(socket_);
  socket_ = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket_ < 0) return ENOTCONN;
  const int on = 1;
  if (::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0) return ENOTCONN;
  const auto* name = static_cast<const sockaddr*>(address);
  if (::connect(socket_, name, static_cast<socklen_t>(size)) == 0) return 0;
  if (errno != EINPROGRESS) return ENOTCONN;
  const int failed = wait_for(POLLOUT);
  if (failed != 0) return failed;
  int error = 0;
  socklen_t error_size = sizeof(error);
  const bool known = ::getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &error_size) == 0;
  return known && error == 0 ? 0 : ENOTCONN;
}

int StoreClient::set_first(const std::string& key, std::string& value) {
  int failed = send_all(kCompareSet + with_length(key) + with_length("") + with_length(value));
  unsigned char bytes[sizeof(std::uint64_t)] = {};
  if (failed == 0) failed = receive_all(bytes, sizeof(bytes));
  if (failed != 0) return failed;
  std::uint64_t size = 0;
  for (std::size_t i = 0; i < sizeof(size); ++i) size |= std::uint64_t{bytes[i]} << (8 * i);
  if (size > kReplyBytesMax) return ENOTCONN;
  value.resize(static_cast<std::size_t>(size));
  return receive_all(value.data(), value.size());
}

int StoreClient::wait_for(short events) const {
  while (true) {
    pollfd waits{socket_, events, 0};
    const int ready = ::poll(&waits, 1, left_ms(deadline_));
    if (ready > 0) return 0;
    if (ready == 0) return ETIMEDOUT;
    if (errno != EINTR) return ENOTCONN;
  }
}

int StoreClient::send_all(const std::string& bytes) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t count = ::send(socket_, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (count > 0) {
      at += static_cast<std::size_t>(count);
    } else if (errno != EAGAIN && errno != EINTR) {
      return ENOTCONN;
    } else if (const int failed = wait_for(POLLOUT); failed != 0) {
      return failed;
    }
  }
  return 0;
}

int StoreClient::receive_all(void* bytes, std::size_t size) {
  std::size_t at = 0;
  while (at < size) {
    const ssize_t count = ::recv(socket_, static_cast<char*>(bytes) + at, size - at, 0);
    if (count > 0) {
      at += static_cast<std::size_t>(count);
    } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
      return ENOTCONN;
    } else if (const int failed = wait_for(POLLIN); failed != 0) {
      return failed;
    }
  }
  return 0;
}

}  // namespace ddprun::worker_link
