// hostile_load: one kind of abuse of a coordinator's port, until stdin ends. Prints `ready` when
// the abuse is at its full strength, and what it amounted to at the end. Or the other client of the
// port, with what it notices. For bench/hostile/hostile.py.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kOpensPerTurn = 64;
constexpr std::chrono::milliseconds kTick{10};
constexpr std::size_t kTicksPerByte = 100;  // one byte per second

const std::string kHello("\x00\xce\xf7\x85\x3c\x0d\x07\x00\x00\x00", 10);  // VALIDATE, PING

std::string frame(const std::string& body) {
  const auto size = static_cast<std::uint32_t>(body.size());
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(size >> shift));
  return bytes + body;
}

/// What a kind does with a connection.
struct Kind {
  std::string_view name;
  std::vector<std::string> first;  // sent at once; connection i has first[i % size]
  std::string drip;                // then one byte of it per second, again and again
  std::string flood;               // or this, as fast as it is taken
  bool ends_at_reply = false;      // the first byte received ends the connection
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all{
      {"slow",
       {std::string("DDPR\0\0\x0f\xff{", 9), "GET /status HTTP/1.1\r\nX: ", kHello + "\x01"},
       "a",
       ""},
      {"half-open", {"D", "G", std::string(1, '\0')}, "", ""},
      {"churn", {kHello}, "", "", true},
      {"junk",
       {"DDPR"},
       "",
       frame(R"({"type":"junk","x":[1,{"y":")" + std::string(900, 'z') + R"("}],"z":null})")},
      {"garbage", {"DDPR" + frame(std::string(64, '\x7f'))}, "", "", true},
  };
  return all;
}

class Attack {
 public:
  Attack(const Kind& kind, std::uint16_t port, std::size_t connections)
      : kind_(kind), epoll_(::epoll_create1(EPOLL_CLOEXEC)), peers_(connections) {
    to_.sin_family = AF_INET;
    to_.sin_port = htons(port);
    to_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (std::size_t i = 0; i < connections; ++i) closed_.push_back(i);
  }

  void run() {
    bool said_ready = false;
    next_tick_ = Clock::now() + kTick;
    while (!stdin_ended()) {
      open_some();
      handle_events();
      drip();
      if (said_ready || (opened_ < peers_.size())) continue;
      said_ready = true;
      std::printf("ready\n");
      std::fflush(stdout);
      counted_from_ = Clock::now();
      opened_at_ready_ = opened_;
      bytes_ = 0;
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - counted_from_).count();
    std::printf("{\"seconds\": %.3f, \"opened\": %zu, \"bytes\": %zu}\n", seconds,
                opened_ - opened_at_ready_, bytes_);
  }

 private:
  struct Peer {
    int fd = -1;
    bool greeted = false;
    std::size_t sent = 0;  // of the flood
  };

  static bool stdin_ended() {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    return ::poll(&input, 1, 0) > 0;
  }

  void open_some() {
    for (int i = 0; i < kOpensPerTurn && !closed_.empty(); ++i) {
      const std::size_t at = closed_.back();
      const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
      if (fd < 0) return;
      // An end without TIME_WAIT, or the ports would be used up.
      const linger reset{1, 0};
      ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
      const int failed = ::connect(fd, reinterpret_cast<const sockaddr*>(&to_), sizeof(to_));
      if (failed != 0 && errno != EINPROGRESS) {
        ::close(fd);
        return;
      }
      closed_.pop_back();
      peers_[at] = {fd};
      epoll_event event{};
      event.events = EPOLLIN | EPOLLOUT;
      event.data.u64 = at;
      ::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
    }
  }

  void handle_events() {
    std::array<epoll_event, 256> events{};
    const int timeout = closed_.empty() ? static_cast<int>(kTick.count()) : 1;
    const int ready = ::epoll_wait(epoll_, events.data(), events.size(), timeout);
    for (int i = 0; i < ready; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      const std::size_t at = event.data.u64;
      const bool reads = (event.events & ~EPOLLOUT) != 0;
      const bool writes = (event.events & EPOLLOUT) != 0;
      if ((reads && !receive(at)) || (writes && !send_some(at))) close(at);
    }
  }

  bool receive(std::size_t at) {
    std::array<char, 65536> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
    const ssize_t count = ::recv(peers_[at].fd, buffer.data(), buffer.size(), 0);
    if (count < 0) return errno == EAGAIN;
    return count > 0 && !kind_.ends_at_reply;
  }

  bool send_some(std::size_t at) {
    Peer& peer = peers_[at];
    if (!peer.greeted) {
      peer.greeted = true;
      ++opened_;
      const std::string& first = kind_.first[at % kind_.first.size()];
      if (!say(peer, first)) return false;
    }
    if (kind_.flood.empty()) {
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.u64 = at;
      return ::epoll_ctl(epoll_, EPOLL_CTL_MOD, peer.fd, &event) == 0;
    }
    const std::string_view rest = std::string_view(kind_.flood).substr(peer.sent);
    const ssize_t count = ::send(peer.fd, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (count < 0) return errno == EAGAIN;
    bytes_ += static_cast<std::size_t>(count);
    peer.sent = (peer.sent + static_cast<std::size_t>(count)) % kind_.flood.size();
    return true;
  }

  bool say(const Peer& peer, std::string_view bytes) {
    const ssize_t count = ::send(peer.fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count > 0) bytes_ += static_cast<std::size_t>(count);
    return count == static_cast<ssize_t>(bytes.size());
  }

  /// Every tick a hundredth of the connections, so that each has one byte per second.
  void drip() {
    if (kind_.drip.empty() || Clock::now() < next_tick_) return;
    next_tick_ += kTick;
    ++tick_;
    for (std::size_t at = tick_ % kTicksPerByte; at < peers_.size(); at += kTicksPerByte) {
      if (peers_[at].fd != -1 && peers_[at].greeted && !say(peers_[at], kind_.drip)) close(at);
    }
  }

  void close(std::size_t at) {
    ::close(peers_[at].fd);
    peers_[at] = {};
    closed_.push_back(at);
  }

  const Kind& kind_;
  sockaddr_in to_{};
  int epoll_;
  std::vector<Peer> peers_;
  std::vector<std::size_t> closed_;  // not open now
  std::size_t opened_ = 0;
  std::size_t opened_at_ready_ = 0;
  std::size_t bytes_ = 0;
  std::size_t tick_ = 0;
  Clock::time_point next_tick_;
  Clock::time_point counted_from_ = Clock::now();
};

/// The other client: a SET and a PING every millisecond, whatever the last one took, each timed
/// from when it was due. A client without pauses would measure mostly the moments when it is
/// served.
class Client {
 public:
  explicit Client(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int on = 1;
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    const int failed = ::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof(to));
    works_ = failed == 0 && exchange(kHello);
  }
  ~Client() { ::close(socket_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// False: the daemon has closed the connection.
  [[nodiscard]] bool run(std::size_t requests) {
    using namespace std::string_literals;
    const std::string set = "\x01\x03\0\0\0\0\0\0\0key\x10\0\0\0\0\0\0\0"s + std::string(16, 'v');
    const std::string request = set + kHello.substr(5);
    std::vector<double> us;
    auto due = Clock::now();
    while (works_ && us.size() < requests) {
      due += std::chrono::milliseconds(1);
      std::this_thread::sleep_until(due);
      works_ = exchange(request);
      us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - due).count());
    }
    if (!works_) return false;
    std::sort(us.begin(), us.end());
    std::printf("{\"p50_us\": %.3f, \"p99_us\": %.3f}\n", us[us.size() / 2],
                us[us.size() * 99 / 100]);
    return true;
  }

 private:
  bool exchange(const std::string& request) {
    std::array<char, 4> pong{};
    return ::send(socket_, request.data(), request.size(), MSG_NOSIGNAL) ==
               static_cast<ssize_t>(request.size()) &&
           ::recv(socket_, pong.data(), pong.size(), MSG_WAITALL) == 4;
  }

  int socket_;
  bool works_ = false;
};

int usage() {
  std::fprintf(stderr,
               "usage: hostile_load PORT KIND CONNECTIONS, until stdin ends\n"
               "       hostile_load PORT client REQUESTS\nKIND:");
  for (const Kind& kind : kinds()) std::fprintf(stderr, " %s", std::string(kind.name).c_str());
  std::fprintf(stderr, "\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return usage();
  const auto port = static_cast<std::uint16_t>(std::stoi(argv[1]));
  const std::size_t number = std::stoul(argv[3]);
  if (std::string_view(argv[2]) == "client") return Client(port).run(number) ? 0 : 1;
  const auto kind = std::find_if(kinds().begin(), kinds().end(),
                                 [&](const Kind& one) { return one.name == argv[2]; });
  if (kind == kinds().end()) return usage();
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  Attack(*kind, port, number).run();
  return 0;
}
