#include "net/reactor.hpp"

#include <arpa/inet.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/address.hpp"
#include "base/assert.hpp"
#include "net/listen.hpp"

namespace ddprun::net {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr std::uint64_t kListenerId = ~std::uint64_t{0};  // no connection has it
constexpr std::chrono::seconds kRetryInterval{1};

bool is_exhaustion(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

constexpr std::size_t kLoggedMax = 1024;

}  // namespace

Reactor::Reactor(const asio::any_io_executor& executor)
    : epoll_(executor), retry_timer_(executor) {}

void Reactor::listen(asio::ip::tcp::acceptor listener) {
  DDPRUN_ASSERT(listener_ == -1 && !is_open());
  endpoint_ = listener.local_endpoint();
  listener.non_blocking(true);
  listener_ = listener.release();  // removed from Asio's epoll set, which would be woken too
  set_inherited_options(listener_, endpoint_);
}

Result<void> Reactor::start(const std::shared_ptr<Handler>& handler, const std::string& what) {
  const int set = ::epoll_create1(EPOLL_CLOEXEC);
  if (set == -1) {
    const std::string why = std::strerror(errno);  // before anything else can set errno
    return Error(ErrorKind::kSystem,
                 "cannot serve " + what + " on " + to_text(endpoint_) + ": " + why);
  }
  epoll_.assign(set);
  handler_ = handler;
  if (listener_ != -1) accepting_ = control(EPOLL_CTL_ADD, listener_, kListenerId, kReadable);
  arm(handler);
  return {};
}

void Reactor::close() {
  error_code ignored;  // nothing to do if closing fails
  epoll_.close(ignored);
  retry_timer_.cancel();
  if (listener_ != -1) ::close(std::exchange(listener_, -1));
}

void Reactor::arm(std::shared_ptr<Handler> handler) {
  epoll_.async_wait(asio::posix::descriptor_base::wait_read,
                    [this, handler = std::move(handler)](const error_code& why) mutable {
                      if (why || !is_open()) return;
                      take_turn(*handler);
                      if (is_open()) arm(std::move(handler));
                    });
}

void Reactor::take_turn(Handler& handler) {
  const TimePoint until = Clock::now() + kTurnTime;
  bool ends = false;
  while (!ends && is_open()) {
    const int count = handle_some(handler, until);
    const bool is_used_up = handler.on_batch_end() == Turn::kIsUsedUp;
    // Then peers that make much work are served one at a time, and the other work between them.
    events_max_ = is_used_up ? 1 : kEventsPerBatch;
    // After a single event more are unlikely, and arm() would report them.
    ends = is_used_up || count <= 1 || Clock::now() >= until;
  }
}

void Reactor::drain(std::size_t connections) {
  const std::shared_ptr<Handler> handler = handler_.lock();
  const std::size_t batches = connections / kEventsPerBatch + 2;
  events_max_ = kEventsPerBatch;
  // The first may be what a turn has left.
  for (std::size_t batch = 0; batch <= batches && is_open(); ++batch) {
    const bool was_left = next_ < fetched_;
    (void)handle_some(*handler, TimePoint::max());
    (void)handler->on_batch_end();
    if (!was_left && fetched_ < kEventsPerBatch) return;
  }
}

// What a turn leaves is still ready in the kernel, which does not have to be asked again: arm()
// finds it so, and asked again the kernel would begin with the same connections.
int Reactor::handle_some(Handler& handler, TimePoint until) {
  if (next_ >= fetched_) {
    next_ = 0;
    fetched_ = std::max(0, ::epoll_wait(epoll_.native_handle(), batch_.data(), events_max_, 0));
  }
  const int first = next_;
  const int last = std::min(fetched_, first + events_max_);
  while (next_ < last && is_open()) {
    const epoll_event event = batch_[static_cast<std::size_t>(next_++)];
    if (event.data.u64 == kListenerId) {
      accept_some(handler);
    } else {
      handler.on_event(event.data.u64, event.events);
    }
    if (Clock::now() >= until) break;
  }
  return next_ - first;
}

void Reactor::accept_some(Handler& handler) {
  for (int count = 0; count < kAcceptsPerEvent && listener_ != -1; ++count) {
    sockaddr_storage from{};
    socklen_t length = sizeof(from);
    const int socket = ::accept4(listener_, reinterpret_cast<sockaddr*>(&from), &length,
                                 SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket >= 0) {
      handler.on_accept(socket, from);
    } else if (errno == EAGAIN) {
      reported_ = false;  // the backlog is empty
      return;
    } else if (is_exhaustion(errno)) {
      return pause_accepting(handler, std::strerror(errno));
    }
    // Any other error concerns only this peer, which has disconnected.
  }
}

void Reactor::pause_accepting(Handler& handler, const std::string& why) {
  accepting_ = false;
  (void)control(EPOLL_CTL_MOD, listener_, kListenerId, 0);
  // Another part of the process may free a descriptor without a call of resume_accepting().
  retry_timer_.expires_after(kRetryInterval);
  retry_timer_.async_wait([this, handler = handler_.lock()](const error_code& error) {
    if (!error) resume_accepting();
  });
  if (!std::exchange(reported_, true)) handler.on_exhausted(why);
}

void Reactor::resume_accepting() {
  if (listener_ == -1 || !is_open() || accepting_) return;
  accepting_ = control(EPOLL_CTL_MOD, listener_, kListenerId, kReadable);
}

std::string Reactor::exhausted_text(const std::string& why, std::size_t connections) const {
  return "cannot accept clients: " + why + "; " + std::to_string(connections) +
         " are connected, new clients wait; raise the limit of open files (ulimit -n) address=" +
         to_text(endpoint_);
}

bool Reactor::watch_changed(Connection& connection, std::uint32_t events) {
  DDPRUN_ASSERT(events != 0);
  const int operation = connection.interest == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
  connection.interest = events;
  return control(operation, connection.fd, connection.id, events);
}

void Reactor::unwatch(Connection& connection) {
  if (std::exchange(connection.interest, 0) == 0) return;
  (void)control(EPOLL_CTL_DEL, connection.fd, connection.id, 0);
}

bool Reactor::control(int operation, int fd, std::uint64_t id, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  return ::epoll_ctl(epoll_.native_handle(), operation, fd, &event) == 0;
}

Connection::Connection(std::uint64_t number, int socket, const sockaddr_storage& peer)
    : id(number), fd(socket) {
  std::memcpy(&from, &peer, sizeof(from));
}

Connection::~Connection() {
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

std::string peer_text(const Connection& connection) {
  return host_and_port(address_text(connection.from), ntohs(connection.from.sin6_port));
}

bool LoggedCauses::is_new(const Connection& connection, const std::string& cause) {
  if (logged_.size() >= kLoggedMax) logged_.clear();
  return logged_.insert(network_of(address_text(connection.from)) + ' ' + cause).second;
}

}  // namespace ddprun::net
