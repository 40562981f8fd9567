#include "rendezvous/store/server.hpp"

#include <malloc.h>
#include <spdlog/logger.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "net/listen.hpp"
#include "rendezvous/store/server_impl.hpp"

namespace ddprun::store {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

constexpr std::uint64_t kListenerEvent = ~std::uint64_t{0};
constexpr int kEventsPerBatch = 256;
// Batches of events before the dispatcher returns to the io_context's other handlers.
constexpr int kBatchesPerDispatch = 8;
// malloc_trim() is called once usage has dropped this far below its peak.
constexpr std::size_t kTrimThreshold = 16 * kMiB;
// Cached blocks of large values are freed after they have been unused for this long.
constexpr std::chrono::seconds kSpareIdleTimeout{1};

}  // namespace

Server::Server(asio::any_io_executor executor, tcp::acceptor listener, ServerOptions options)
    : impl_(std::make_shared<Impl>(executor, std::move(options))) {
  impl_->listen(executor, std::move(listener));
}

Server::Server(asio::any_io_executor executor, ServerOptions options)
    : impl_(std::make_shared<Impl>(std::move(executor), std::move(options))) {}

Server::~Server() {
  impl_->close();
}
Result<void> Server::start() {
  return impl_->start();
}
void Server::when_idle(std::function<void()> idle) {
  impl_->when_idle(std::move(idle));
}
void Server::close() {
  impl_->close();
}
void Server::adopt(int socket, const sockaddr_storage& from, std::string_view received) {
  impl_->adopt(socket, from, received);
}
tcp::endpoint Server::endpoint() const {
  return impl_->endpoint();
}
std::size_t Server::connections() const {
  return impl_->connections();
}
Counters Server::counters() const {
  return impl_->counters();
}

Server::Impl::Impl(asio::any_io_executor executor, ServerOptions options)
    : options_(std::move(options)),
      epoll_(executor),
      drop_spares_(executor),
      memory_(options_.limits.store_bytes),
      copied_replies_(options_.limits.reply_bytes),
      store_(options_.limits, memory_) {}

Server::Impl::~Impl() {
  close();
}

void Server::Impl::listen(asio::any_io_executor executor, tcp::acceptor listener) {
  acceptor_ =
      std::make_shared<net::BatchAcceptor>(std::move(executor), std::move(listener),
                                           [this](const std::string& why) { log_exhausted(why); });
}

tcp::endpoint Server::Impl::endpoint() const {
  return acceptor_ ? acceptor_->endpoint() : tcp::endpoint();
}

Counters Server::Impl::counters() const {
  return {open_, store_.keys(), store_.waits(), memory_.used()};
}

Result<void> Server::Impl::start() {
  DDPRUN_ASSERT(!epoll_.is_open() && !closed_);
  const int set = ::epoll_create1(EPOLL_CLOEXEC);
  if (set == -1) {
    return Error(ErrorKind::kSystem, "cannot serve the store on " + net::to_text(endpoint()) +
                                         ": " + std::strerror(errno));
  }
  epoll_.assign(set);
  spare_parser_ = std::make_unique<Parser>(options_.limits, memory_);
  receive_buffer_ = std::make_unique<char[]>(kReceiveBytes);
  if (acceptor_) acceptor_->start(set, kListenerEvent);
  arm();
  return {};
}

void Server::Impl::close() {
  if (closed_) return;
  closed_ = true;
  if (acceptor_) acceptor_->close();
  boost::system::error_code ignored;  // nothing to do if closing fails
  epoll_.close(ignored);
  drop_spares_.cancel();
  when_idle_ = nullptr;
  sessions_.clear();
  free_slots_.clear();
  open_ = 0;
  if (options_.log) options_.log->debug("store closed address={}", net::to_text(endpoint()));
}

void Server::Impl::when_idle(std::function<void()> idle) {
  when_idle_ = std::move(idle);
  if (open_ == 0) tell_idle();
}

// A client that comes in between makes the store busy again.
void Server::Impl::tell_idle() {
  asio::post(epoll_.get_executor(), [self = shared_from_this()] {
    if (self->closed_ || self->open_ > 0 || !self->when_idle_) return;
    const auto idle = std::exchange(self->when_idle_, nullptr);
    idle();
  });
}

void Server::Impl::arm() {
  epoll_.async_wait(asio::posix::descriptor_base::wait_read,
                    [self = shared_from_this()](const boost::system::error_code& why) {
                      if (why || self->closed_) return;
                      self->dispatch();
                      if (!self->closed_) self->arm();
                    });
}

void Server::Impl::dispatch() {
  std::array<epoll_event, kEventsPerBatch> events;
  session_quota_used_ = false;
  for (int batch = 0; batch < kBatchesPerDispatch; ++batch) {
    const int ready = ::epoll_wait(epoll_.native_handle(), events.data(), kEventsPerBatch, 0);
    for (int at = 0; at < ready; ++at) {
      const epoll_event& event = events[static_cast<std::size_t>(at)];
      if (event.data.u64 == kListenerEvent) {
        acceptor_->accept_some(
            [this](int socket, const sockaddr_storage& from) { admit(socket, from); });
      } else {
        on_event(event);
      }
    }
    // After a single event more are unlikely, and arm() would report them. A session that used up
    // its quota must not delay other handlers either.
    if (ready <= 1 || session_quota_used_) break;
  }
  return_memory();
}

void Server::Impl::adopt(int socket, const sockaddr_storage& from, std::string_view received) {
  DDPRUN_ASSERT(epoll_.is_open() && !closed_);
  const ConnectionId id = admit(socket, from);
  Session* session = find(id);
  if (session == nullptr || received.empty()) return;
  settle(*session, guarded([&] { return process_input(*session, received); }));
  flush_queued();
}

// The connection may be closed again when this returns.
ConnectionId Server::Impl::admit(int socket, const sockaddr_storage& from) {
  std::uint32_t slot = static_cast<std::uint32_t>(sessions_.size());
  if (free_slots_.empty()) {
    sessions_.emplace_back();
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  const auto id = static_cast<ConnectionId>(std::uint64_t{accepted_++} << 32 | slot);
  sessions_[slot] = std::make_unique<Session>(id, socket, from, copied_replies_);
  ++open_;
  Session& session = *sessions_[slot];
  epoll_event event{};
  event.events = session.interest;
  event.data.u64 = static_cast<std::uint64_t>(id);
  const bool watched = ::epoll_ctl(epoll_.native_handle(), EPOLL_CTL_ADD, socket, &event) == 0;
  if (open_ > options_.limits.connections) {
    refusal_ = Refusal(Reason::kTooManyConnections, open_);
    end_session(session, End::kRefused);
  } else if (!watched) {
    end_session(session, End::kOutOfMemory);
  }
  return id;
}

void Server::Impl::log_exhausted(const std::string& why) {
  if (!options_.log) return;
  options_.log->warn(
      "store cannot accept clients: {}; {} are connected, new clients wait; raise the limit of "
      "open "
      "files (ulimit -n) address={}",
      why, open_, net::to_text(endpoint()));
}

void Server::Impl::return_memory() {
  if (memory_.spare_bytes() > 0 && !dropping_spares_) {
    dropping_spares_ = true;
    drop_spares_when_idle(memory_.spare_moves());
  }
  memory_peak_ = std::max(memory_peak_, memory_.used());
  if (memory_peak_ - memory_.used() < kTrimThreshold) return;
  memory_peak_ = memory_.used();
  ::malloc_trim(0);
}

void Server::Impl::drop_spares_when_idle(std::size_t moves_before) {
  drop_spares_.expires_after(kSpareIdleTimeout);
  drop_spares_.async_wait(
      [self = shared_from_this(), moves_before](const boost::system::error_code& error) {
        if (error || self->closed_) return;
        const std::size_t moves = self->memory_.spare_moves();
        if (moves != moves_before) {
          self->drop_spares_when_idle(moves);
          return;
        }
        self->memory_.drop_spares();
        self->dropping_spares_ = false;
      });
}

}  // namespace ddprun::store
