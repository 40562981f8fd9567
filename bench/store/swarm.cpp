#include "bench/store/swarm.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace ddprun::store::bench {

namespace {

constexpr std::size_t kHead = 64;
constexpr int kStall_ms = 60'000;

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what);
}
[[noreturn]] void fail_errno(const std::string& what) {
  fail(what + ": " + std::strerror(errno));
}

}  // namespace

Swarm::Swarm(std::string host, std::uint16_t port)
    : host_(std::move(host)),
      port_(port),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      buffer_(1 << 20) {
  if (epoll_ == -1) fail_errno("epoll");
}

Swarm::~Swarm() {
  for (const Peer& peer : peers_) {
    if (peer.fd != -1) ::close(peer.fd);
  }
  ::close(epoll_);
}

void Swarm::connect_and_run(std::size_t count, std::size_t in_flight, const Script& script) {
  script_ = &script;
  to_open_ = count;
  peers_.reserve(peers_.size() + count);
  while (to_open_ > 0 && running_ < in_flight) open_next();
  while (running_ > 0) {
    wait_for_events();
    while (to_open_ > 0 && running_ < in_flight) open_next();
  }
}

void Swarm::run(std::size_t first, std::size_t count, const Script& script) {
  begin(first, count, script);
  finish();
}

void Swarm::begin(std::size_t first, std::size_t count, const Script& script) {
  script_ = &script;
  for (std::size_t connection = first; connection < first + count; ++connection) {
    peers_[connection].at = 0;
    peers_[connection].done = false;
    ++running_;
    advance(connection);
  }
}

void Swarm::finish() {
  while (running_ > 0) wait_for_events();
}

void Swarm::open_next() {
  --to_open_;
  ++running_;
  const std::size_t connection = peers_.size();
  Peer& peer = peers_.emplace_back();
  peer.fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (peer.fd == -1) fail_errno("socket");
  const int on = 1;
  ::setsockopt(peer.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  // With a pacing congestion control (bbr) the benchmark would measure the client, not the server.
  ::setsockopt(peer.fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port_);
  if (::inet_pton(AF_INET, host_.c_str(), &address.sin_addr) != 1)
    fail("not an IPv4 address: " + host_);
  peer.done = false;
  const int result = ::connect(peer.fd, reinterpret_cast<sockaddr*>(&address), sizeof(address));
  if (result == -1 && errno != EINPROGRESS) fail_errno("connect");
  peer.connecting = result == -1;
  watch(connection, peer.connecting ? EPOLLOUT : EPOLLIN, EPOLL_CTL_ADD);
  if (!peer.connecting) advance(connection);
}

// Sends the next step; continues with the one after if it has no reply.
void Swarm::advance(std::size_t connection) {
  Peer& peer = peers_[connection];
  while (true) {
    Step step;
    if (!script_->next(connection, peer.at, step)) {
      peer.done = true;
      --running_;
      return;
    }
    peer.unsent = step.request;
    peer.missing = step.reply_bytes;
    peer.head.clear();
    peer.begun = Clock::now();
    if (!send_some(connection) || peer.missing > 0) return;
    ++peer.at;
  }
}

bool Swarm::send_some(std::size_t connection) {
  Peer& peer = peers_[connection];
  while (!peer.unsent.empty()) {
    const ssize_t count = ::send(peer.fd, peer.unsent.data(), peer.unsent.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EAGAIN) break;
    if (count < 0) fail_errno("send");
    peer.unsent.remove_prefix(static_cast<std::size_t>(count));
  }
  const bool blocked = !peer.unsent.empty();
  if (blocked != peer.writing) {
    peer.writing = blocked;
    watch(connection, blocked ? EPOLLIN | EPOLLOUT : EPOLLIN, EPOLL_CTL_MOD);
  }
  return !blocked;
}

void Swarm::receive_some(std::size_t connection) {
  Peer& peer = peers_[connection];
  while (peer.missing > 0) {
    const std::size_t wanted = std::min(buffer_.size(), peer.missing);
    const ssize_t count = ::recv(peer.fd, buffer_.data(), wanted, 0);
    if (count < 0 && errno == EAGAIN) return;
    if (count < 0) fail_errno("recv");
    if (count == 0) fail("the server closed a connection");
    const auto got = static_cast<std::size_t>(count);
    if (peer.head.size() < kHead) {
      peer.head.append(buffer_.data(), std::min(got, kHead - peer.head.size()));
    }
    peer.missing -= got;
    if (got < wanted) return;
  }
}

void Swarm::reply_complete(std::size_t connection) {
  Peer& peer = peers_[connection];
  if (latencies_s_ != nullptr) {
    latencies_s_->push_back(std::chrono::duration<float>(Clock::now() - peer.begun).count());
  }
  if (!script_->check(connection, peer.at, peer.head)) {
    fail("wrong reply to step " + std::to_string(peer.at) + " of connection " +
         std::to_string(connection));
  }
  ++peer.at;
  advance(connection);
}

void Swarm::watch(std::size_t connection, std::uint32_t events, int operation) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = connection;
  if (::epoll_ctl(epoll_, operation, peers_[connection].fd, &event) == -1) fail_errno("epoll_ctl");
}

void Swarm::wait_for_events() {
  std::array<epoll_event, 512> events;
  const int ready = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), kStall_ms);
  if (ready == 0) fail("no reply within 1 min");
  for (int at = 0; at < ready; ++at) {
    const epoll_event& event = events[static_cast<std::size_t>(at)];
    const auto connection = static_cast<std::size_t>(event.data.u64);
    Peer& peer = peers_[connection];
    if (peer.connecting) {
      int why = 0;
      socklen_t length = sizeof(why);
      ::getsockopt(peer.fd, SOL_SOCKET, SO_ERROR, &why, &length);
      if (why != 0) fail(std::string("connect: ") + std::strerror(why));
      peer.connecting = false;
      watch(connection, EPOLLIN, EPOLL_CTL_MOD);
      advance(connection);
      continue;
    }
    if (peer.writing && send_some(connection) && peer.missing == 0 && !peer.done) {
      ++peer.at;
      advance(connection);
    }
    if (peer.done && (event.events & ~std::uint32_t{EPOLLOUT}) != 0) {
      fail("the server closed an idle connection or sent too much");
    }
    const bool expecting = !peer.done && peer.missing > 0;
    if (!expecting) continue;
    receive_some(connection);
    if (peer.missing == 0) reply_complete(connection);
  }
}

}  // namespace ddprun::store::bench
