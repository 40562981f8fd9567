#include "rendezvous/coordinator/server.hpp"

#include <spdlog/logger.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <new>
#include <utility>

#include "base/address.hpp"
#include "base/assert.hpp"
#include "net/listen.hpp"
#include "rendezvous/coordinator/server_impl.hpp"

namespace ddprun::coordinator {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

/// Lost connections wait so long for the rest of what the kernel has told of at once.
constexpr std::chrono::milliseconds kLossesKept{5};

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

Result<std::unique_ptr<Server>> open_server(asio::any_io_executor executor, const std::string& bind,
                                            std::uint16_t port, ServerOptions options) {
  auto listener = net::listen_on(executor, bind, port);
  if (!listener) return listener.error();
  auto server = std::make_unique<Server>(executor, std::move(*listener), std::move(options));
  const auto started = server->start();
  if (!started) return started.error();
  return server;
}

Server::Impl::Impl(asio::any_io_executor executor, tcp::acceptor listener, ServerOptions options)
    : executor_(executor),
      options_(std::move(options)),
      reactor_(executor),
      links_(reactor_, options_),
      door_(executor, options_, links_),
      pages_(options_.status, links_.unsent()),
      timer_(executor),
      settled_(executor, TimePoint::max()),
      last_record_(options_.seat.record.value_or(RunRecord{})) {
  reactor_.listen(std::move(listener));
}

Server::Impl::~Impl() {
  close();
}

Result<void> Server::Impl::start() {
  DDPRUN_ASSERT(!reactor_.is_open() && !closed_);
  auto started = links_.start();
  if (started) started = door_.start();
  if (!started) return started;
  return reactor_.start(shared_from_this(), "the rendezvous");
}

void Server::Impl::close() {
  if (closed_) return;
  closed_ = true;
  reactor_.close();
  timer_.cancel();
  links_.clear();
  runs_.clear();
  held_.clear();
  unsaid_.reset();
  founders_.clear();
  pages_.drop();
  unfinished_ = 0;
  door_.close();
  settled_.cancel();
}

void Server::Impl::shut_down(int exit_code, const std::string& reason) {
  if (closed_) return;
  ending_ = true;
  std::vector<std::shared_ptr<RunEntry>> all;
  for (const auto& [name, entry] : runs_) all.push_back(entry);
  for (const auto& entry : all) step(entry, round::Shutdown{exit_code, reason});
  settle_all();
}

void Server::Impl::begin_fresh_store(Round ended, std::function<void()> idle) {
  if (closed_) {
    return asio::post(executor_, [alive = weak_from_this(), idle = std::move(idle)] {
      if (alive.lock() != nullptr) idle();
    });
  }
  std::vector<round::LeftOnNode> nodes;
  if (!runs_.empty()) nodes = runs_.begin()->second->run.left_of(ended);  // a static run is alone
  const auto started = door_.begin_fresh(ended, nodes, std::move(idle));
  if (!started && options_.log) options_.log->error("{}", started.error().sentence);
  if (!started) return close();
  reactor_.resume_accepting();
}

bool Server::Impl::settled() const {
  return closed_ || (unfinished_ == 0 && links_.leaving() == 0);
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

void Server::Impl::on_accept(int socket, const sockaddr_storage& from) {
  const std::size_t most = options_.store.connections;
  if (connections() >= std::min(most, options_.descriptors)) links_.make_room();
  const bool one_too_many = connections() >= most;
  Link& link = links_.add(socket, from);
  if (one_too_many) return links_.turn_away(link);
  read(link);
  links_.watch_new(link);
}

void Server::Impl::on_event(std::uint64_t id, std::uint32_t events) {
  Link* link = links_.find(id);
  if (link == nullptr) return;
  if (link->state == LinkState::kClosing) {
    const std::uint32_t end = link->ended ? net::kGone | net::kPeerEnded : net::kGone;
    if ((events & end) != 0) return links_.mark_closed(*link);
  } else if (link->state == LinkState::kAtGate) {
    return links_.mark_closed(*link);  // it has gone
  } else if ((events & (link->is_read() ? ~net::kWritable : net::kGone)) != 0) {
    read(*link);
  }
  if ((events & net::kWritable) != 0 && link->state != LinkState::kClosed) links_.flush(*link);
}

void Server::Impl::read(Link& link) {
  try {
    hear(link, links_.receive(link));
    if (!link.waits_turn) return;
    serve_handshakes();
    links_.watch_until_turn(link);
  } catch (const std::bad_alloc&) {
    links_.lose(link, "the coordinator is out of memory");  // affects only the link being served
  }
}

void Server::Impl::hear(Link& link, Links::Heard heard) {
  if (std::holds_alternative<Links::HttpText>(heard)) return ask(link);
  if (std::holds_alternative<Links::StoreClient>(heard)) return door_.enter(link);
  auto* messages = std::get_if<Links::Messages>(&heard);
  if (messages == nullptr) return;
  for (Result<protocol::Message>& message : *messages) {
    if (link.state != LinkState::kAgent) break;
    if (message) {
      on_message(link, std::move(*message));
    } else {
      links_.answer_invalid(link, message.error());
    }
  }
  links_.finish(link);
}

void Server::Impl::serve_handshakes() {
  while (Link* link = links_.next_handshake()) {
    const TimePoint begun = Clock::now();
    hear(*link, links_.continue_handshake(*link));
    links_.end_handshake_turn(*link, begun);
  }
}

// Nodes that go down together cost the others one round, also where their events take several
// turns. The rest of the batch may never come: its connections may be closed by then.
net::Reactor::Turn Server::Impl::on_batch_end() {
  if (links_.has_losses() && reactor_.is_amid_batch()) {
    if (!losses_due_) losses_due_ = Clock::now() + kLossesKept;
    arm();
  } else {
    settle_all();
  }
  return links_.take_flood() ? net::Reactor::Turn::kIsUsedUp : net::Reactor::Turn::kMayContinue;
}

void Server::Impl::on_exhausted(const std::string& why) {
  if (!options_.log) return;
  options_.log->warn("{}", reactor_.exhausted_text(why, connections()));
}

// Ends the handling of every event: reports lost connections to their runs, sends frames, closes
// and erases closed links.
void Server::Impl::settle_all() {
  losses_due_.reset();
  do {
    while (auto loss = links_.take_loss()) step(loss->run, std::move(loss->lost));
  } while (links_.flush_queued() || links_.has_losses());
  if (!door_.is_open()) {
    bool moved = runs_.empty();
    for (const auto& [name, entry] : runs_) moved = door_.look(entry->run) || moved;
    if (moved) door_.pass();
  }
  if (links_.erase_closed()) reactor_.resume_accepting();
  if (unfinished_ == 0) settled_.cancel();
  arm();
}

/// What is due. Before a peer is blamed, what it has sent is read.
void Server::Impl::tick() {
  const bool looks = door_.deadline() && *door_.deadline() <= Clock::now();
  if (looks || links_.has_overdue()) drain();
  if (closed_) return;
  links_.close_overdue();
  links_.read_rested();
  serve_handshakes();
  if (looks) door_.look_again();
  if (keeper_due_ && *keeper_due_ <= Clock::now()) {
    keeper_due_.reset();
    keeper_overdue_ = true;
    end_without_keeper();
  }
  if (losses_due_ && *losses_due_ > Clock::now()) return arm();
  settle_all();
}

void Server::Impl::arm() {
  if (closed_) return;
  std::optional<TimePoint> next = links_.deadline();
  for (const auto& other : {door_.deadline(), losses_due_, keeper_due_}) {
    if (other && (!next || *other < *next)) next = other;
  }
  if (!next || (armed_ && *armed_ <= *next)) return;
  armed_ = next;
  timer_.expires_at(*next);
  timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (error || self->closed_) return;
    self->armed_.reset();
    self->tick();
  });
}

void Server::Impl::ask(Link& link) {
  const round::Peer peer = peer_of(link);
  const auto asked = pages_.asked(link.held, peer);
  if (!asked) return links_.await_rest(link);
  links_.drop_request(link);
  const std::string moved = asked->code == 200 ? moved_for(peer) : "";
  if (asked->code == 200 && moved.empty()) render(asked->page);
  links_.send(link, pages_.answer(*asked, moved));
  links_.close(link);
}

/// Where the only run of this server is coordinated, as `peer` reaches it; empty: here.
std::string Server::Impl::moved_for(const round::Peer& peer) const {
  if (elsewhere() == nullptr || !runs_.empty()) return "";
  const protocol::Moved& place = elsewhere()->place;
  const bool is_here = is_loopback_literal(place.address) && !is_loopback_literal(peer.address);
  return host_and_port(is_here ? peer.local_address : place.address, place.port);
}

void Server::Impl::render(Page page) {
  const TimePoint begun = Clock::now();
  if (!pages_.is_fresh(page, begun)) pages_.render(page, view(begun), begun);
}

std::string Server::Impl::status_json() {
  if (closed_) return "";
  render(Page::kJson);
  return pages_.json();
}

ServerView Server::Impl::view(TimePoint now) const {
  ServerView view;
  view.address = net::to_text(endpoint());
  view.uptime = now - started_;
  view.now = std::chrono::floor<WallTime::duration>(std::chrono::system_clock::now());
  view.store = door_.live()->counters();
  view.connections = connections();
  view.agents = links_.agents();
  view.rejected = links_.rejected();
  for (const auto& [name, entry] : runs_) {
    if (entry->finished_at && now - *entry->finished_at >= kOverKept) continue;
    RunView run;
    run.status = entry->run.status(now);
    for (const RunEntry::Line& line : entry->notes) run.log.push_back({now - line.at, line.text});
    view.runs.push_back(std::move(run));
  }
  if (elsewhere() != nullptr) {
    const protocol::Moved& place = elsewhere()->place;
    view.moved.push_back({options_.only_run->value(), host_and_port(place.address, place.port)});
  }
  std::sort(view.runs.begin(), view.runs.end(), [](const RunView& left, const RunView& right) {
    return left.status.run_id < right.status.run_id;
  });
  return view;
}

}  // namespace ddprun::coordinator
