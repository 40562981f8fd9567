#include "net/batch_acceptor.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "net/listen.hpp"

namespace ddprun::net {

namespace asio = boost::asio;

namespace {

constexpr int kAcceptsPerBatch = 128;
constexpr std::chrono::seconds kRetryInterval{1};

bool is_exhaustion(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

}  // namespace

BatchAcceptor::BatchAcceptor(asio::any_io_executor executor, asio::ip::tcp::acceptor listener,
                             OnExhausted on_exhausted)
    : endpoint_(listener.local_endpoint()),
      retry_timer_(std::move(executor)),
      on_exhausted_(std::move(on_exhausted)),
      listener_(-1) {
  listener.non_blocking(true);
  listener_ = listener.release();  // removed from Asio's epoll set, which would be woken too
  set_inherited_options(listener_, endpoint_);
}

void BatchAcceptor::start(int epoll, std::uint64_t key) {
  epoll_ = epoll;
  key_ = key;
  epoll_event event{};
  event.data.u64 = key_;
  ::epoll_ctl(epoll_, EPOLL_CTL_ADD, listener_, &event);
  resume();
}

void BatchAcceptor::accept_some(const OnAccept& on_accept) {
  for (int count = 0; count < kAcceptsPerBatch && listener_ != -1; ++count) {
    sockaddr_storage from{};
    socklen_t length = sizeof(from);
    const int socket = ::accept4(listener_, reinterpret_cast<sockaddr*>(&from), &length,
                                 SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket >= 0) {
      on_accept(socket, from);
    } else if (errno == EAGAIN) {
      reported_ = false;  // the backlog is empty
      return;
    } else if (is_exhaustion(errno)) {
      return pause(std::strerror(errno));
    }
    // Any other error concerns only this peer, which has disconnected.
  }
}

void BatchAcceptor::pause(const std::string& why) {
  if (!std::exchange(accepting_, false)) return;
  watch(0);
  if (!std::exchange(reported_, true)) on_exhausted_(why);
  // Another part of the process may free a descriptor without telling us.
  retry_timer_.expires_after(kRetryInterval);
  retry_timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error) self->resume();
  });
}

void BatchAcceptor::resume() {
  if (epoll_ == -1 || std::exchange(accepting_, true)) return;
  watch(EPOLLIN);
}

void BatchAcceptor::watch(std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = key_;
  ::epoll_ctl(epoll_, EPOLL_CTL_MOD, listener_, &event);
}

void BatchAcceptor::close() {
  epoll_ = -1;
  retry_timer_.cancel();
  if (listener_ != -1) ::close(std::exchange(listener_, -1));
}

}  // namespace ddprun::net
