#include "rendezvous/store/server.hpp"

#include <malloc.h>
#include <spdlog/logger.h>

#include <utility>

#include "net/listen.hpp"
#include "rendezvous/store/server_impl.hpp"

namespace ddprun::store {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

// malloc_trim() is called once usage has dropped this far below its peak.
constexpr std::size_t kTrimThreshold = 16 * kMiB;
// Cached blocks of large values are freed after they have been unused for this long.
constexpr std::chrono::seconds kSpareIdleTimeout{1};

}  // namespace

Server::Server(asio::any_io_executor executor, tcp::acceptor listener, ServerOptions options)
    : impl_(std::make_shared<Impl>(std::move(executor), std::move(options))) {
  impl_->listen(std::move(listener));
}

Server::Server(asio::any_io_executor executor, ServerOptions options)
    : impl_(std::make_shared<Impl>(std::move(executor), std::move(options))) {}

Server::~Server() {
  impl_->when_idle(nullptr);  // its owner is gone too
  impl_->on_rank_claims(nullptr);
  impl_->close();
}
Result<void> Server::start() {
  return impl_->start();
}
void Server::when_idle(std::function<void()> idle) {
  impl_->when_idle(std::move(idle));
}
void Server::on_rank_claims(std::function<void(const RankClaims&)> seen) {
  impl_->on_rank_claims(std::move(seen));
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

std::vector<StoreWait> Server::waits() const {
  return impl_->waits();
}

Server::Impl::Impl(asio::any_io_executor executor, ServerOptions options)
    : options_(std::move(options)),
      executor_(executor),
      reactor_(executor),
      drop_spares_(executor),
      forget_(executor),
      memory_(options_.limits.store_bytes),
      copied_replies_(options_.limits.reply_bytes),
      store_(options_.limits, memory_) {}

Server::Impl::~Impl() {
  close();
}

Counters Server::Impl::counters() const {
  return {connections(), store_.keys(), store_.waits(), memory_.used(), peers_refused_};
}

Result<void> Server::Impl::start() {
  DDPRUN_ASSERT(!reactor_.is_open() && !closed_);
  spare_parser_ = std::make_unique<Parser>(options_.limits, memory_);
  receive_buffer_ = std::make_unique<char[]>(kReceiveBytes);
  return reactor_.start(shared_from_this(), "the store");
}

void Server::Impl::close() {
  if (closed_) return;
  closed_ = true;
  reactor_.close();
  drop_spares_.cancel();
  forget_.cancel();
  sessions_.clear();
  memory_peak_ = std::max(memory_peak_, memory_.used());
  store_.forget();
  if (memory_peak_ >= kTrimThreshold) ::malloc_trim(0);
  tell_idle();
  if (options_.log) options_.log->debug("store closed address={}", net::to_text(endpoint()));
}

void Server::Impl::when_idle(std::function<void()> idle) {
  when_idle_ = std::move(idle);
  tell_idle();
}

// A client that comes in between makes the store busy again.
void Server::Impl::tell_idle() {
  if (connections() > 0) return;
  forget_later();
  if (!when_idle_) return;
  asio::post(executor_, [self = shared_from_this()] {
    if (self->connections() > 0 || !self->when_idle_) return;
    const auto idle = std::exchange(self->when_idle_, nullptr);
    idle();
  });
}

void Server::Impl::forget_later() {
  if (!options_.forgets_after || closed_) return;
  forget_.expires_after(*options_.forgets_after);
  forget_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error && !self->closed_ && self->connections() == 0) self->forget_some();
  });
}

// Millions of keys take a while. A client that comes in between finds an empty store.
void Server::Impl::forget_some() {
  if (closed_) return;
  if (!store_.forget_some(options_.limits.names_per_turn)) {
    std::erase_if(shares_, [](const auto& one) { return one.second.connections == 0; });
    return return_memory();
  }
  asio::post(executor_, [self = shared_from_this()] { self->forget_some(); });
}

net::Reactor::Turn Server::Impl::on_batch_end() {
  return_memory();
  turns_.tick(Clock::now());
  // A session that used up its quota must not delay other handlers.
  return std::exchange(session_quota_used_, false) ? net::Reactor::Turn::kIsUsedUp
                                                   : net::Reactor::Turn::kMayContinue;
}

void Server::Impl::adopt(int socket, const sockaddr_storage& from, std::string_view received) {
  DDPRUN_ASSERT(reactor_.is_open() && !closed_);
  Session* session = admit(socket, from);
  if (session == nullptr || received.empty()) return;
  const Turns::Share share = session->share->number;
  const TimePoint began = Clock::now();
  const std::size_t used_before = memory_.used();
  const End end = guarded([&] { return process_input(*session, received); });
  count_added(*session, used_before);
  settle(*session, end);
  flush_queued();
  turns_.spent(share, Clock::now() - began);
}

Server::Impl::End Server::Impl::check_peer(const Session& session) {
  if (!options_.peers) return End::kAlive;
  const Peers::Verdict verdict = options_.peers->check(session);
  if (verdict == Peers::Verdict::kWelcome) return End::kAlive;
  if (verdict == Peers::Verdict::kEnded) return End::kPeerClosed;
  ++peers_refused_;
  refusal_ = options_.peers->refusal();
  return End::kRefused;
}

/// Null if the connection was closed again.
Session* Server::Impl::admit(int socket, const sockaddr_storage& from) {
  Session& session = sessions_.add(socket, from, copied_replies_);
  if (const End end = check_peer(session); end != End::kAlive) {
    end_session(session, end);
    return nullptr;
  }
  session.share = &share_of(session.from);
  ++session.share->connections;
  const bool watched = reactor_.watch(session, net::kReadable);
  if (watched && connections() <= options_.limits.connections) return &session;
  refusal_ = Refusal(Reason::kTooManyConnections, connections());
  end_session(session, watched ? End::kRefused : End::kOutOfMemory);
  return nullptr;
}

void Server::Impl::on_exhausted(const std::string& why) {
  if (!options_.log) return;
  options_.log->warn("store {}", reactor_.exhausted_text(why, connections()));
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
