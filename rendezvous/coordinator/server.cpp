#include "rendezvous/coordinator/server.hpp"

#include <spdlog/logger.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

#include "base/assert.hpp"
#include "net/listen.hpp"
#include "rendezvous/coordinator/server_impl.hpp"

namespace ddprun::coordinator {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

constexpr std::uint64_t kListenerEvent = 0;  // links are numbered from 1
constexpr int kEventsAtOnce = 256;
// Rounds of events before the other work of the io_context has its turn.
constexpr int kRoundsAtOnce = 8;

// Two coordinators, on any machines and at any times, never share a name.
std::string unique_author() {
  std::random_device random;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  return fmt::format("{:x}-{:x}-{:08x}{:08x}", ::getpid(), micros, random(), random());
}

}  // namespace

Server::Server(asio::any_io_executor executor, tcp::acceptor listener, ServerOptions options) {
  net::accept_when_readable(listener.native_handle());
  impl_ = std::make_shared<Impl>(std::move(executor), std::move(listener), std::move(options));
}

Server::~Server() {
  impl_->close();
}
Result<void> Server::start() {
  return impl_->start();
}
void Server::shut_down(int exit_code, const std::string& reason) {
  impl_->shut_down(exit_code, reason);
}
void Server::begin_fresh_store(Round ended, std::function<void()> idle) {
  impl_->begin_fresh_store(ended, std::move(idle));
}
void Server::close_store(Round ended) {
  impl_->close_store(ended);
}
asio::awaitable<void> Server::settle() {
  return Impl::settle(impl_);
}
void Server::close() {
  impl_->close();
}
tcp::endpoint Server::endpoint() const {
  return impl_->endpoint();
}

Server::Impl::Impl(asio::any_io_executor executor, tcp::acceptor listener, ServerOptions options)
    : executor_(executor),
      options_(std::move(options)),
      acceptor_(std::make_shared<net::BatchAcceptor>(
          executor, std::move(listener), [this](const std::string& why) { tell_exhausted(why); })),
      epoll_(executor),
      idle_timeout_(executor),
      settled_(executor, TimePoint::max()),
      unsent_(options_.limits.unsent_bytes),
      partial_(options_.limits.partial_bytes),
      author_(unique_author()) {}

Server::Impl::~Impl() {
  close();
}

// One run's agents are of one kind. A daemon serves torchrun too.
std::unique_ptr<store::Server> Server::Impl::make_store() const {
  const auto torchrun = options_.only_run ? store::Torchrun::kRefused : store::Torchrun::kServed;
  return std::make_unique<store::Server>(
      executor_, store::ServerOptions{options_.store, options_.log, torchrun});
}

Result<void> Server::Impl::start() {
  DDPRUN_ASSERT(!epoll_.is_open() && !closed_);
  const int set = ::epoll_create1(EPOLL_CLOEXEC);
  if (set == -1) {
    return Error(ErrorKind::kSystem, "cannot serve the rendezvous on " + net::to_text(endpoint()) +
                                         ": " + std::strerror(errno));
  }
  epoll_.assign(set);
  store_ = make_store();
  auto store_started = store_->start();
  if (!store_started) return store_started;
  receive_buffer_ = std::make_unique<char[]>(kReceiveBytes);
  spare_reader_ = std::make_unique<protocol::FrameReader>();
  acceptor_->start(set, kListenerEvent);
  arm();
  return {};
}

void Server::Impl::close() {
  if (closed_) return;
  closed_ = true;
  acceptor_->close();
  boost::system::error_code ignored;  // nothing is left to do about it
  epoll_.close(ignored);
  idle_timeout_.cancel();
  lost_.clear();
  to_flush_.clear();
  due_.clear();
  links_.clear();
  runs_.clear();
  last_frame_.reset();
  json_page_ = html_page_ = {};
  agents_ = leaving_ = unfinished_ = 0;
  if (store_) store_->close();
  ended_stores_.clear();
  settled_.cancel();
}

void Server::Impl::begin_fresh_store(Round ended, std::function<void()> idle) {
  if (closed_ || !epoll_.is_open()) return;
  store_->when_idle(std::move(idle));
  ended_stores_.insert_or_assign(ended, std::move(store_));
  store_ = make_store();
  const auto started = store_->start();
  if (!started && options_.log) options_.log->error("{}", started.error().sentence);
  if (!started) close();
  acceptor_->resume();
}

bool Server::Impl::settled() const {
  return closed_ || (unfinished_ == 0 && leaving_ == 0);
}

asio::awaitable<void> Server::Impl::settle(std::shared_ptr<Impl> self) {
  // Each run ends by itself: its verdict and the time its agents have are bounded.
  constexpr auto kToken = asio::as_tuple(asio::use_awaitable);
  while (!self->settled()) {
    co_await self->settled_.async_wait(kToken);
  }
}

void Server::Impl::arm() {
  epoll_.async_wait(asio::posix::descriptor_base::wait_read,
                    [self = shared_from_this()](const boost::system::error_code& why) {
                      if (why || self->closed_) return;
                      for (int round = 0; round < kRoundsAtOnce; ++round) {
                        if (self->dispatch_some() <= 1 || self->closed_) break;
                      }
                      if (!self->closed_) self->arm();
                    });
}

int Server::Impl::dispatch_some() {
  std::array<epoll_event, kEventsAtOnce> events;
  const int ready = ::epoll_wait(epoll_.native_handle(), events.data(), kEventsAtOnce, 0);
  for (int at = 0; at < ready; ++at) {
    const epoll_event& event = events[static_cast<std::size_t>(at)];
    if (event.data.u64 == kListenerEvent) {
      accept_some();
    } else {
      on_event(event);
    }
  }
  settle_all();
  return ready;
}

// Everybody who has sent something is read once. Bounded: the kernel lets the ready take turns.
void Server::Impl::drain() {
  const std::size_t passes = links_.size() / kEventsAtOnce + 2;
  for (std::size_t pass = 0; pass < passes && !closed_; ++pass) {
    if (dispatch_some() < kEventsAtOnce) return;
  }
}

void Server::Impl::accept_some() {
  std::vector<Link*> fresh;
  acceptor_->accept_some([&](int socket, const sockaddr_storage& from) {
    if (Link* link = admit(socket, from)) fresh.push_back(link);
  });
  for (Link* link : fresh) begin(*link);
}

/// Null: it is one too many and was closed.
Link* Server::Impl::admit(int socket, const sockaddr_storage& from) {
  const std::uint64_t id = ++accepted_;
  auto link = std::make_unique<Link>(id, socket, from);
  if (links_.size() + store_->connections() >= options_.store.connections) {
    tell_once(*link, fmt::format("{} connections, no more than connections = {}",
                                 options_.store.connections + 1, options_.store.connections));
    return nullptr;
  }
  return links_.emplace(id, std::move(link)).first->second.get();
}

// The first bytes are here already, unless the peer is slow to speak: a client of the store is
// handed on without having been in our epoll set.
void Server::Impl::begin(Link& link) {
  read_some(link);
  if (link.state == LinkState::kDead) return;
  epoll_event event{};
  event.events = link.interest = EPOLLIN;
  event.data.u64 = link.id;
  if (::epoll_ctl(epoll_.native_handle(), EPOLL_CTL_ADD, link.fd, &event) != 0) {
    tell_once(link, "out of memory");
    lose(link, "the coordinator is out of memory");
  }
}

void Server::Impl::tell_exhausted(const std::string& why) {
  if (!options_.log) return;
  options_.log->warn(
      "cannot accept clients: {}; {} are connected, the others wait; raise the limit of open "
      "files (ulimit -n) address={}",
      why, links_.size() + store_->connections(), net::to_text(endpoint()));
}

}  // namespace ddprun::coordinator
