#include "rendezvous/coordinator/server.hpp"

#include <spdlog/logger.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "base/address.hpp"
#include "base/assert.hpp"
#include "net/listen.hpp"
#include "rendezvous/coordinator/server_impl.hpp"

namespace ddprun::coordinator {

namespace asio = boost::asio;
using asio::ip::tcp;

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
std::vector<StoreWait> Server::store_waits() const {
  return impl_->store_waits();
}
void Server::on_rank_claims(std::function<void(const RankClaims&)> seen) {
  impl_->on_rank_claims(std::move(seen));
}
asio::awaitable<void> Server::settle() {
  return Impl::settle(impl_);
}
std::optional<LedRound> Server::led() const {
  return impl_->led();
}

bool Server::has_moved() const {
  return impl_->has_moved();
}
bool Server::is_ending() const {
  return impl_->is_ending();
}
void Server::on_rival(MeetRival meets) {
  impl_->on_rival(std::move(meets));
}
void Server::on_resigned(std::function<void()> resigned) {
  impl_->on_resigned(std::move(resigned));
}
void Server::resume() {
  impl_->resume();
}
void Server::recorded(const RunRecord& record) {
  impl_->recorded(record);
}
void Server::close() {
  impl_->close();
}
tcp::endpoint Server::endpoint() const {
  return impl_->endpoint();
}

const std::string& Server::nonce() const {
  return impl_->nonce();
}

std::string Server::status_json() {
  return impl_->status_json();
}

Server::Impl::Impl(asio::any_io_executor executor, tcp::acceptor listener, ServerOptions options)
    : executor_(executor),
      options_(std::move(options)),
      reactor_(executor),
      idle_timeout_(executor),
      settled_(executor, TimePoint::max()),
      rest_timer_(executor),
      gate_timer_(executor),
      unsent_(options_.limits.unsent_bytes),
      partial_(options_.limits.partial_bytes),
      unproven_timer_(executor),
      settle_timer_(executor),
      last_record_(options_.record.value_or(RunRecord{})),
      keeper_timer_(executor) {
  reactor_.listen(std::move(listener));
}

Server::Impl::~Impl() {
  close();
}

// One run's agents are of one kind. A daemon serves torchrun too.
std::unique_ptr<store::Server> Server::Impl::make_store() const {
  const auto torchrun = options_.only_run ? store::Torchrun::kRefused : store::Torchrun::kServed;
  store::ServerOptions options{options_.store, options_.log, torchrun, options_.peers};
  if (!options_.only_run) options.forgets_after = kStoreKept;
  return std::make_unique<store::Server>(executor_, std::move(options));
}

Result<void> Server::Impl::start() {
  DDPRUN_ASSERT(!reactor_.is_open() && !closed_);
  auto tls = net::make_link_tls(options_.secret, options_.certificates);
  if (!tls) return tls.error();
  tls_ = std::move(*tls);
  if (tls_ != nullptr && tls_->rsa_bits() > kRsaBitsMax && options_.log) {
    options_.log->warn(
        "the key of the certificate is RSA of {} bits: every handshake, of strangers too, costs "
        "many times what one on P-256 costs, and several times one of RSA of {} bits",
        tls_->rsa_bits(), kRsaBitsMax);
  }
  store_ = make_store();
  auto started = store_->start();
  if (!started) return started;
  receive_buffer_ = std::make_unique<char[]>(kReceiveBytes);
  spare_reader_ = std::make_unique<protocol::FrameReader>();
  return reactor_.start(shared_from_this(), "the rendezvous");
}

void Server::Impl::close() {
  if (closed_) return;
  closed_ = true;
  reactor_.close();
  idle_timeout_.cancel();
  rest_timer_.cancel();
  unproven_timer_.cancel();
  settle_timer_.cancel();
  keeper_timer_.cancel();
  gate_timer_.cancel();
  at_gate_.clear();
  resting_.clear();
  lost_.clear();
  to_flush_.clear();
  due_.clear();
  incomplete_.clear();
  unproven_ = {};
  unheard_ = {};
  links_.clear();
  closed_links_.clear();
  runs_.clear();
  held_.clear();
  unsaid_.reset();
  founders_.clear();
  last_frame_.reset();
  json_page_ = html_page_ = {};
  agents_ = leaving_ = unfinished_ = 0;
  if (store_) store_->close();
  for (const auto& [round, store] : ended_stores_) store->close();  // their users are told so
  settled_.cancel();
}

void Server::Impl::begin_fresh_store(Round ended, std::function<void()> idle) {
  if (closed_) {
    return asio::post(executor_, [alive = weak_from_this(), idle = std::move(idle)] {
      if (alive.lock() != nullptr) idle();
    });
  }
  store_->when_idle(std::move(idle));
  ended_stores_.insert_or_assign(ended, std::move(store_));
  store_ = make_store();
  const auto started = store_->start();
  if (!started && options_.log) options_.log->error("{}", started.error().sentence);
  if (!started) return close();
  close_gate(ended);
  reactor_.resume_accepting();
}

bool Server::Impl::settled() const {
  return closed_ || (unfinished_ == 0 && leaving_ == 0);
}

asio::awaitable<void> Server::Impl::settle(std::shared_ptr<Impl> self) {
  // Every run ends within bounds: those of its verdict, and of the time its agents have after it.
  constexpr auto kToken = asio::as_tuple(asio::use_awaitable);
  self->settled_.expires_at(TimePoint::max());
  while (self->unfinished_ > 0) {
    co_await self->settled_.async_wait(kToken);
  }
  // By then every agent that is owed a message has it or was given up. A stranger that came later
  // is not waited for, or another could always follow.
  self->settled_.expires_after(self->options_.limits.idle_timeout);
  while (!self->settled()) {
    const auto [cancelled] = co_await self->settled_.async_wait(kToken);
    if (!cancelled) co_return;
  }
}

// Nodes that go down together cost the others one round, also where their events take several
// turns.
net::Reactor::Turn Server::Impl::on_batch_end() {
  if (!lost_.empty() && reactor_.is_amid_batch()) {
    settle_soon();
  } else {
    settle_all();
  }
  return std::exchange(peer_floods_, false) ? net::Reactor::Turn::kIsUsedUp
                                            : net::Reactor::Turn::kMayContinue;
}

/// The rest of the batch may never come: its connections may be closed by then.
void Server::Impl::settle_soon() {
  if (std::exchange(settles_soon_, true)) return;
  settle_timer_.expires_after(kLossesKept);
  settle_timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    self->settles_soon_ = false;
    if (!error && !self->closed_) self->settle_all();
  });
}

// The oldest connection of the address that has most gives way, of those without a hello or without
// a proof: a peer that keeps the places of one address keeps out itself.
void Server::Impl::make_room() {
  const Unproven& most = unheard_.size() < unproven_.size() ? unproven_ : unheard_;
  if (most.size() == 0) return;
  Link& loser = *links_.find(most.loser());
  log_once(loser, "no hello yet, and another connection needs its place");
  mark_closed(loser);
}

// Mostly the first bytes have been received already: a client of the store is then handed on
// without having been in our epoll set.
void Server::Impl::on_accept(int socket, const sockaddr_storage& from) {
  if (connections() >= std::min(options_.store.connections, options_.descriptors)) make_room();
  const bool one_too_many = connections() >= options_.store.connections;
  Link& link = links_.add(socket, from, unsent_);
  if (one_too_many) {
    log_once(link, fmt::format("{} connections, no more than connections = {}",
                               options_.store.connections + 1, options_.store.connections));
    links_.erase(link.id);
    return;
  }
  read_some(link);
  const bool says_hello = link.state == LinkState::kAgent && link.due;
  if (link.tls == nullptr && (link.state == LinkState::kArriving || says_hello)) {
    unheard_.add(link.id, network_of(net::address_text(link.from)));
  }
  const bool is_ready = link.state == LinkState::kClosed || link.state == LinkState::kAtGate;
  if (is_ready || reactor_.watch(link, net::kReadable)) return;
  log_once(link, "out of memory");
  lose(link, "the coordinator is out of memory");
}

void Server::Impl::on_exhausted(const std::string& why) {
  if (!options_.log) return;
  options_.log->warn("{}", reactor_.exhausted_text(why, connections()));
}

}  // namespace ddprun::coordinator
