// A real Server on its own thread, and blocking clients with deadlines, over loopback.
#pragma once

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "rendezvous/store/server.hpp"
#include "rendezvous/store/server_peers.hpp"
#include "tests/store/requests.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/server_thread.hpp"

// Defined by the allocators of the sanitizers, null elsewhere.
extern "C" __attribute__((weak)) void __sanitizer_purge_allocator();

namespace ddprun::store {

class LiveServer {
 public:
  explicit LiveServer(Limits limits = {}, std::shared_ptr<Peers> peers = nullptr,
                      std::uint16_t port = 0) {
    start({limits, nullptr, Torchrun::kServed, std::move(peers)}, port);
  }
  /// One that forgets what it has, so long after its last client.
  explicit LiveServer(std::chrono::milliseconds forgets_after) {
    ServerOptions options;
    options.forgets_after = forgets_after;
    start(std::move(options));
  }
  /// With Peers that log where the server does.
  LiveServer(Limits limits, Peers::Options options) {
    options.log = thread_.logger();
    start({limits, nullptr, Torchrun::kServed, std::make_shared<Peers>(std::move(options))});
  }
  ~LiveServer() { close(); }

  [[nodiscard]] std::uint16_t port() const { return port_; }
  /// Destroys the Server while its clients are connected.
  void close() {
    on_thread([this] { server_.reset(); });
  }
  std::size_t connections() {
    std::size_t count = 0;
    on_thread([&] { count = server_->connections(); });
    return count;
  }
  std::size_t waits() {
    std::size_t count = 0;
    on_thread([&] { count = server_->counters().waits; });
    return count;
  }
  std::vector<StoreWait> told_waits() {
    std::vector<StoreWait> told;
    on_thread([&] { told = server_->waits(); });
    return told;
  }
  /// Calls `seen` on the server's thread.
  void on_rank_claims(std::function<void(const RankClaims&)> seen) {
    on_thread([&] { server_->on_rank_claims(std::move(seen)); });
  }
  void until_waits(std::size_t count) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (waits() < count) {
      REQUIRE(std::chrono::steady_clock::now() < deadline);
      std::this_thread::yield();
    }
  }
  /// Whether the server served other work of its thread while, after `work` on that thread, its
  /// connections became `rest`.
  template <class Work>
  bool leaves_turns(Work work, std::size_t rest) {
    std::promise<void> done;
    bool in_between = false;
    std::function<void()> look = [&, before = std::size_t{0}]() mutable {
      const std::size_t now = server_->connections();
      in_between = in_between || (now > rest && now < before);
      before = now;
      now == rest ? done.set_value() : boost::asio::post(thread_.executor(), std::ref(look));
    };
    on_thread([&] {
      work();
      look();
    });
    done.get_future().wait();
    return in_between;
  }
  Counters counters() {
    Counters now;
    on_thread([&] { now = server_->counters(); });
    return now;
  }
  /// As if the connection, of which `received` was read, had come from `from`.
  void adopt(int socket, const sockaddr_storage& from, const std::string& received) {
    on_thread([&] { server_->adopt(socket, from, received); });
  }
  /// Runs `work` on the server's thread, later.
  template <class Work>
  void post(Work work) {
    boost::asio::post(thread_.executor(), std::move(work));
  }
  std::string log() { return thread_.log(); }
  template <class Work>
  void on_thread(Work work) {
    thread_.run(work);
  }

 private:
  void start(ServerOptions options, std::uint16_t port = 0) {
    options.log = thread_.logger();
    server_ =
        std::make_unique<Server>(thread_.executor(), thread_.listen(port), std::move(options));
    port_ = server_->port();
    REQUIRE(server_->start().has_value());
    thread_.start();
  }

  ServerThread thread_;
  std::unique_ptr<Server> server_;
  std::uint16_t port_ = 0;
};

class Client {
 public:
  /// `from`: an address of loopback, in host byte order.
  explicit Client(std::uint16_t port, in_addr_t from = INADDR_LOOPBACK)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    REQUIRE(fd_ >= 0);
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(from);
    if (from != INADDR_LOOPBACK) {
      REQUIRE(::bind(fd_, reinterpret_cast<sockaddr*>(&own), sizeof(own)) == 0);
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int result = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address));
    REQUIRE(result == 0);
  }
  [[nodiscard]] int port() const {
    sockaddr_in own{};
    socklen_t bytes = sizeof(own);
    REQUIRE(::getsockname(fd_, reinterpret_cast<sockaddr*>(&own), &bytes) == 0);
    return ntohs(own.sin_port);
  }
  Client(Client&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() {
    if (fd_ != -1) ::close(fd_);
  }

  [[nodiscard]] int fd() const { return fd_; }
  /// Sends all bytes, or as many as the server accepts before it closes the connection.
  void send(std::string_view bytes) { (void)send_all(bytes); }
  /// Returns false if the server closes the connection first.
  [[nodiscard]] bool send_all(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }
  /// Reads exactly `size` bytes, or fewer if the server closes the connection or `timeout_ms`
  /// expires.
  std::string receive(std::size_t size, int timeout_ms = kHung_ms) {
    std::string bytes;
    while (bytes.size() < size && readable(timeout_ms)) {
      char buffer[65536];
      const ssize_t count = ::recv(fd_, buffer, std::min(sizeof(buffer), size - bytes.size()), 0);
      if (count <= 0) break;
      bytes.append(buffer, static_cast<std::size_t>(count));
    }
    return bytes;
  }
  std::string ask(std::string_view request, std::size_t reply_size) {
    send(request);
    return receive(reply_size);
  }
  /// True if nothing arrives, not even a close, within a time that is long for loopback.
  bool silent() { return !readable(100); }
  /// True if the server closes without sending a byte.
  bool closed() {
    if (!readable(kHung_ms)) return false;
    char byte = 0;
    return ::recv(fd_, &byte, 1, 0) <= 0;
  }
  void finish_sending() { ::shutdown(fd_, SHUT_WR); }
  /// Closes the connection with RST.
  void reset() {
    const linger at_once{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    ::close(std::exchange(fd_, -1));
  }

 private:
  bool readable(int timeout_ms) {
    pollfd entry{fd_, POLLIN, 0};
    return ::poll(&entry, 1, timeout_ms) == 1;
  }
  int fd_;
};

/// A modern client after its handshake.
inline Client connect(std::uint16_t port) {
  Client client(port);
  REQUIRE(client.ask(requests::validate() + requests::ping(7), 4) == requests::u32(7));
  return client;
}

/// Waits for a condition of the server that sends no notification.
template <class Condition>
bool eventually(Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kHung_ms);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

/// Resident memory of this process, from /proc. Does not count the freed blocks that
/// AddressSanitizer keeps in its quarantine (up to 256 MB) to detect later uses of them.
inline std::size_t resident_bytes() {
  if (&__sanitizer_purge_allocator != nullptr) __sanitizer_purge_allocator();
  std::size_t total = 0;
  std::size_t resident = 0;
  if (FILE* file = std::fopen("/proc/self/statm", "re")) {
    if (std::fscanf(file, "%zu %zu", &total, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return resident * 4096;
}

}  // namespace ddprun::store
