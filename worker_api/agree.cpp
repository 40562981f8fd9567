// A value that all ranks of a round agree on: the first that reaches the round's store.
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
#include <cstddef>
#include <cstdint>
#include <string>

#include "worker_api/link.hpp"
#include "worker_api/rounds.hpp"

namespace ddprun::worker_link {
namespace {

constexpr std::uint64_t kReplyBytesMax = 1 << 20;
constexpr char kValidate = 0;
constexpr char kCompareSet = 2;
constexpr char kPing = 13;
constexpr std::uint32_t kMagic = 0x3C85F7CE;
constexpr std::uint32_t kNonce = 1;

template <class Integer>
std::string number_text(Integer value) {
  const auto bytes = little_endian(value);
  return {bytes.begin(), bytes.end()};
}

std::string with_length(const std::string& text) {
  return number_text(std::uint64_t{text.size()}) + text;
}

int left_ms(std::int64_t deadline) {
  const std::int64_t left = (deadline - monotonic_now() + kMillisecond - 1) / kMillisecond;
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, INT_MAX));
}

/// A connection to the store of a round, in the c10d wire protocol: as much of it as agree() needs.
/// Every call has a deadline. Errors: ETIMEDOUT or ENOTCONN.
class StoreClient {
 public:
  /// `deadline` of monotonic_now().
  explicit StoreClient(std::int64_t deadline) : deadline_(deadline) {}
  ~StoreClient();
  StoreClient(const StoreClient&) = delete;
  StoreClient& operator=(const StoreClient&) = delete;

  [[nodiscard]] int connect(const std::string& host, std::uint16_t port);
  /// Sets a key that is not there, and returns its value; a value that is there stays.
  [[nodiscard]] int set_first(const std::string& key, std::string& value);

 private:
  [[nodiscard]] int try_address(const void* address, std::size_t size, int family);
  [[nodiscard]] int wait_for(short events) const;
  [[nodiscard]] int send_all(const std::string& bytes);
  [[nodiscard]] int receive_all(void* bytes, std::size_t size);

  std::int64_t deadline_;
  int socket_ = -1;
};

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
  failed = send_all(kValidate + number_text(kMagic) + kPing + number_text(kNonce));
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
  std::uint8_t bytes[sizeof(std::uint64_t)] = {};
  if (failed == 0) failed = receive_all(bytes, sizeof(bytes));
  if (failed != 0) return failed;
  const auto size = from_little_endian<std::uint64_t>(bytes);
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

}  // namespace
}  // namespace ddprun::worker_link

namespace ddprun {

namespace {

constexpr std::size_t kAgreedBytesMax = 64 * 1024;
// An empty value counts as missing where it is compared.
constexpr char kFirstByte = '=';

}  // namespace

// The store of torchrun is that of all rounds.
int agree(const std::string& name, std::string& value, std::chrono::milliseconds timeout) {
  if (name.empty() || name.size() > kAgreedBytesMax) return EINVAL;
  if (value.size() > kAgreedBytesMax) return EMSGSIZE;
  const auto world = worker_link::present_world();
  if (!world) return EINVAL;  // of a spare that has no place: there is no round
  if (world->world_size == 1 && world->master_port == 0) return 0;
  const std::int64_t wait_ms = std::clamp<std::int64_t>(timeout.count(), 0, INT32_MAX);
  worker_link::StoreClient store(worker_link::monotonic_now() +
                                 wait_ms * worker_link::kMillisecond);
  int failed = store.connect(world->master_addr, world->master_port);
  std::string proposed = kFirstByte + value;
  const std::string key = "ddprun/agree/" + std::to_string(world->round) + "/" + name;
  if (failed == 0) failed = store.set_first(key, proposed);
  if (failed != 0) return failed;
  const bool is_ours = !proposed.empty() && proposed.front() == kFirstByte;
  if (!is_ours || proposed.size() > kAgreedBytesMax + 1) return ENOTCONN;
  value = proposed.substr(1);
  return 0;
}

}  // namespace ddprun
