#include <spdlog/logger.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <map>

#include "base/address.hpp"
#include "rendezvous/store/server_impl.hpp"

namespace ddprun::store {

namespace {

// Maximum number of bytes received from one session per turn.
constexpr std::size_t kReceivePerTurn = kMiB / 8;
/// What torchrun's agents write first, with c10d and with static. No worker has such a key.
bool is_of_torchrun(const Request& request) {
  if (request.op == Opcode::kCompareSet) return request.key.starts_with("/torch.rendezvous.");
  constexpr std::string_view kRoleInfo = "torchelastic/role_info/";
  return request.op == Opcode::kSet && request.key.find(kRoleInfo) != std::string_view::npos;
}

/// Whether the store may hold more afterwards.
bool adds(Opcode op) {
  return op == Opcode::kSet || op == Opcode::kCompareSet || op == Opcode::kAdd ||
         op == Opcode::kAppend || op == Opcode::kMultiSet || op == Opcode::kQueuePush;
}

/// What is logged once for each address.
std::string kind_of(const Refusal& refusal) {
  std::string reason = std::to_string(static_cast<int>(refusal.reason));
  if (refusal.reason != Reason::kOtherUser) return reason;
  return reason + " " + std::to_string(refusal.value);  // all users have one address
}

/// Whether the client may wait now, until other clients have set what it asks for.
bool waits_now(Opcode op) {
  return op == Opcode::kWait || op == Opcode::kBarrier;
}

/// Of a long key the beginning, and more of the end: that names the rank.
std::string shown(std::string_view key) {
  if (key.size() <= kStoreKeyMax) return std::string(key);
  constexpr std::size_t kBegin = 20;
  constexpr std::string_view kGap = "...";
  constexpr std::size_t kEnd = kStoreKeyMax - kBegin - kGap.size();
  return std::string(key.substr(0, kBegin)) + std::string(kGap) +
         std::string(key.substr(key.size() - kEnd));
}

}  // namespace

void Server::Impl::on_event(std::uint64_t id, std::uint32_t events) {
  Session* session = sessions_.find(id);
  if (session == nullptr) return;  // closed earlier in the same batch
  const bool is_read = !session->eof && !session->paused;
  const bool is_input = (events & ~net::kWritable) != 0 && (events & net::kGone) == 0;
  if (!is_read && is_input) return;  // it was readable before it was paused
  const Turns::Share share = session->share->number;
  if (shares_.size() > 1 && turns_.has_used_up(share)) return wait_turn(*session);
  const TimePoint began = Clock::now();
  const std::size_t used_before = memory_.used();
  const End end = serve(*session, events);
  count_added(*session, used_before);
  settle(*session, end);
  flush_queued();
  turns_.spent(share, Clock::now() - began);
}

Server::Impl::End Server::Impl::serve(Session& session, std::uint32_t events) {
  if ((events & ~net::kWritable) == 0) return guarded([&] { return resume(session); });
  if (session.eof || session.paused) return End::kPeerReset;  // it has gone
  return guarded([&] { return receive(session); });
}

void Server::Impl::count_added(Session& session, std::size_t used_before) {
  const std::size_t used = memory_.used();
  for (std::size_t* added : {&session.added, &session.share->added}) {
    if (used >= used_before) {
      *added += used - used_before;
    } else {
      *added -= std::min(*added, used_before - used);
    }
  }
}

// What others have deleted meanwhile counts while the store is short of room alone.
std::optional<Reason> Server::Impl::refusal_of_share(const Session& session) const {
  const std::size_t all = options_.limits.store_bytes;
  if (memory_.used() <= all / 2) return std::nullopt;
  if (session.added > all / 2) return Reason::kShareFull;
  if (session.share->added > all - all / 4) return Reason::kAddressShareFull;
  return std::nullopt;
}

Share& Server::Impl::share_of(const sockaddr_in6& from) {
  const std::string address = network_of(net::address_text(from));
  const bool is_shared = shares_.size() >= kSharesMax && !shares_.contains(address);
  const auto [place, is_new] = shares_.try_emplace(is_shared ? std::string() : address);
  Share& share = place->second;
  if (is_new) share = {place->first, 0, 0, ++shares_made_};
  return share;
}

void Server::Impl::leave_share(const Session& session) {
  if (session.share == nullptr || --session.share->connections > 0) return;
  // Its own address may have a share by now that other connections use.
  if (session.share->added == 0) shares_.erase(std::string(session.share->address));
}

Server::Impl::End Server::Impl::receive(Session& session) {
  std::size_t total = 0;
  while (total < kReceivePerTurn) {
    std::span<char> room(receive_buffer_.get(), kReceiveBytes);
    const std::span<char> direct = session.parser ? session.parser->direct() : std::span<char>();
    if (!direct.empty()) room = direct;
    const ssize_t received = ::recv(session.fd, room.data(), room.size(), 0);
    if (received < 0) return errno == EAGAIN ? End::kAlive : End::kPeerReset;
    if (received == 0) {
      session.eof = true;
      session.parser.reset();  // a truncated request has no effect
      drop_waits(session);
      return End::kAlive;
    }
    const auto count = static_cast<std::size_t>(received);
    std::string_view input(room.data(), count);
    if (!direct.empty()) {
      session.parser->direct_received(count);
      input = {};
    }
    const End end = process_input(session, input);
    if (end != End::kAlive || session.paused || count < room.size()) return end;
    total += count;
  }
  return End::kAlive;
}

Server::Impl::End Server::Impl::process_input(Session& session, std::string_view input) {
  if (session.parser == nullptr) {
    spare_parser_->serve(session.dialect);
    const End end = parse(session, *spare_parser_, input);
    if (end == End::kAlive && !spare_parser_->between_requests()) {
      auto fresh = std::make_unique<Parser>(options_.limits, memory_);
      session.parser = std::exchange(spare_parser_, std::move(fresh));
    } else if (end != End::kAlive) {
      spare_parser_ = std::make_unique<Parser>(options_.limits, memory_);
    }
    return end;
  }
  const End end = parse(session, *session.parser, input);
  if (end == End::kAlive && session.parser->between_requests()) session.parser.reset();
  return end;
}

// On return the parser is between requests, or suspended inside one without borrowed bytes.
Server::Impl::End Server::Impl::parse(Session& session, Parser& parser, std::string_view input) {
  while (true) {
    switch (parser.next(input)) {
      case Parser::Result::kNeedMore:
        session.dialect = parser.dialect();
        if (parser.suspend()) return End::kAlive;
        [[fallthrough]];
      case Parser::Result::kRefused:
        refusal_ = parser.refusal();
        return End::kRefused;
      case Parser::Result::kRequest:
        break;
    }
    if (options_.torchrun == Torchrun::kRefused && is_of_torchrun(parser.request())) {
      refusal_ = Refusal(Reason::kTorchrun);
      return End::kRefused;
    }
    const auto share = adds(parser.request().op) ? refusal_of_share(session) : std::nullopt;
    if (share) {
      refusal_ = Refusal(*share, session.share->added);
      refusal_.op = parser.request().op;
      return End::kRefused;
    }
    look_for_rank_zero(session, parser.request());
    const auto refused = store_.step(session.store_id(), parser.request(), session.replies);
    wake_up(store_.woken());
    if (refused) {
      refusal_ = *refused;
      return End::kRefused;
    }
    if (waits_now(parser.request().op)) session.waits_since = Clock::now();
    // Bounds the work per turn, however much a client pipelines and however fast it reads.
    const Opcode op = parser.request().op;
    const std::size_t names_max = options_.limits.names_per_turn;
    if (op == Opcode::kListKeys) {
      session.listing = store_.list_more(session.store_id(), names_max);
    }
    if (op == Opcode::kCancelWait) drop_later();
    const bool is_unfinished = store_.is_unfinished(session.store_id());
    session.listing = session.listing || is_unfinished;
    const bool names_many = is_unfinished || parser.request().keys.size() > names_max;
    // Those visit every key, and every name of a wait.
    const bool ends_turn = names_many || op == Opcode::kListKeys || op == Opcode::kCancelWait;
    if (!ends_turn && !is_backlogged(session, options_.limits.unsent_bytes)) continue;
    const End end = flush(session);
    if (end != End::kAlive) return end;
    const bool may_continue = input.empty() && !names_many && !session.listing;
    if (may_continue && !is_backlogged(session, options_.limits.unsent_bytes)) continue;
    parser.serve(parser.dialect());
    session.dialect = parser.dialect();
    return pause(session, input);
  }
}

// A client tells its pid as the nonce of the PING that it connects with.
void Server::Impl::look_for_rank_zero(Session& session, const Request& request) {
  if (request.op == Opcode::kPing) session.process = static_cast<std::uint32_t>(request.number);
  if (request.op != Opcode::kSet || !on_rank_claims_ || session.process == 0) return;
  if (!announces_rank_zero(request.key)) return;
  const auto claims = rank_zero_.announced(session.store_id(), session.process);
  if (claims) on_rank_claims_(*claims);
}

// Half of the budget for copied replies is reserved for long lists.
bool Server::Impl::is_backlogged(const Session& session, std::size_t unsent_max) const {
  if (session.replies.unsent() > unsent_max) return true;
  return !session.replies.empty() && copied_replies_.used() > options_.limits.reply_bytes / 2;
}

Server::Impl::End Server::Impl::pause(Session& session, std::string_view rest) {
  session.paused = true;
  session_quota_used_ = true;
  if (rest.empty()) return End::kAlive;
  if (!memory_.try_take(rest.size())) {
    refusal_ = Refusal(Reason::kStoreFull, memory_.used() + rest.size());
    return End::kRefused;
  }
  session.held = std::make_unique<std::string>(rest);
  return End::kAlive;
}

// Continues with a session that has drained its replies or whose turn has come.
Server::Impl::End Server::Impl::resume(Session& session) {
  const End flushed = flush(session);
  if (flushed != End::kAlive || !session.paused) return flushed;
  if (is_backlogged(session, options_.limits.unsent_bytes / 2)) return End::kAlive;
  if (session.listing) return go_on(session);
  session.paused = false;
  const std::unique_ptr<std::string> held = std::move(session.held);
  if (held == nullptr) return End::kAlive;
  memory_.give_back(held->size());
  return process_input(session, *held);
}

Server::Impl::End Server::Impl::go_on(Session& session) {
  session_quota_used_ = true;
  const ConnectionId id = session.store_id();
  const std::size_t names_max = options_.limits.names_per_turn;
  if (store_.is_unfinished(id)) {
    if (const auto refused = store_.go_on(id, names_max, session.replies)) {
      refusal_ = *refused;
      return End::kRefused;
    }
    session.listing = store_.is_unfinished(id);
  } else {
    session.listing = store_.list_more(id, names_max);
  }
  if (!session.listing && std::exchange(session.woken, false)) session.replies.put_u8(0);
  return flush(session);
}

Server::Impl::End Server::Impl::flush(Session& session) {
  const net::Sent sent = net::send_all(session.fd, session.replies);
  return sent == net::Sent::kBroken ? End::kPeerReset : End::kAlive;
}

void Server::Impl::wake_up(const std::vector<ConnectionId>& woken) {
  for (const ConnectionId id : woken) {
    Session* session = find(id);
    DDPRUN_ASSERT(session != nullptr);
    if (session->listing) {
      session->woken = true;
      continue;
    }
    session->replies.put_u8(0);
    if (!session->queued) to_flush_.push_back(id);
    session->queued = true;
  }
}

void Server::Impl::flush_queued() {
  for (std::size_t at = 0; at < to_flush_.size(); ++at) {
    Session* session = find(to_flush_[at]);
    if (session == nullptr) continue;
    session->queued = false;
    settle(*session, End::kAlive);
  }
  to_flush_.clear();
}

// Ends the handling of every event: sends replies, updates the epoll interest, and closes and
// erases sessions that ended.
void Server::Impl::settle(Session& session, End end) {
  if (end == End::kAlive) end = guarded([&] { return flush(session); });
  if (end == End::kAlive && session.eof && session.replies.empty() && !session.paused) {
    end = End::kPeerClosed;
  }
  if (end == End::kAlive) {
    watch(session);
  } else {
    end_session(session, end);
  }
}

void Server::Impl::watch(Session& session) {
  if (session.waits_turn) return;
  const std::uint32_t input = session.eof || session.paused ? 0U : net::kReadable;
  // epoll serves ready descriptors round-robin, so a paused session that has drained its replies
  // waits for its turn there.
  const bool output = session.paused || !session.replies.empty();
  (void)reactor_.watch(session, input | (output ? net::kWritable : 0U));
}

void Server::Impl::end_session(Session& session, End end) {
  log_end(session, end);
  drop_waits(session);
  leave_share(session);
  rank_zero_.disconnected(session.store_id());
  if (session.held != nullptr) memory_.give_back(session.held->size());
  sessions_.erase(session.id);
  tell_idle();
  reactor_.resume_accepting();
}

void Server::Impl::drop_waits(const Session& session) {
  store_.on_disconnect(session.store_id());
  if (store_.drop_some(0)) session_quota_used_ = true;
  drop_later();
}

// Names that no client waits for any more are freed in turns.
void Server::Impl::drop_later() {
  if (closed_ || dropping_ || !store_.drop_some(0)) return;
  dropping_ = true;
  boost::asio::post(executor_, [self = shared_from_this()] {
    self->dropping_ = false;
    if (self->closed_) return;
    (void)self->store_.drop_some(self->options_.limits.names_per_turn);
    self->drop_later();
  });
}

void Server::Impl::log_end(const Session& session, End end) {
  const bool refused = end == End::kRefused || end == End::kOutOfMemory;
  if (!options_.log || !(refused || options_.log->should_log(spdlog::level::debug))) return;
  switch (end) {
    case End::kRefused:
      log_once(session, kind_of(refusal_), to_text(refusal_, options_.limits));
      return;
    case End::kOutOfMemory:
      log_once(session, "memory", "out of memory");
      return;
    default:
      options_.log->debug("store connection ended: {} by the client peer={}",
                          end == End::kPeerReset ? "reset" : "closed", peer_text(session));
  }
}

void Server::Impl::log_once(const Session& session, const std::string& kind,
                            const std::string& cause) {
  LogQuota& quota = quotas_.of(kind);
  const bool is_new = logged_.is_new(session, kind) && quota.try_take(Clock::now());
  const std::size_t omitted = is_new ? quota.take_omitted() : 0;
  if (omitted > 0) options_.log->warn("omitted {} lines like the next: too many", omitted);
  options_.log->log(is_new ? spdlog::level::warn : spdlog::level::debug,
                    "store closed a connection: {} peer={}", cause, peer_text(session));
}

// Addresses whose connections make more work than a turn has time for wait for a turn of theirs.
// Out of the epoll set, which would report it again and again meanwhile.
void Server::Impl::wait_turn(Session& session) {
  if (std::exchange(session.waits_turn, true)) return;
  reactor_.unwatch(session);
  turns_.wait(session.share->number, session.id);
  serve_later();
}

// One address at a time: what others have sent is read in between.
void Server::Impl::serve_later() {
  if (closed_ || turns_.empty() || std::exchange(turn_posted_, true)) return;
  boost::asio::post(executor_, [self = shared_from_this()] {
    self->turn_posted_ = false;
    if (self->closed_) return;
    self->serve_one_turn();
    self->serve_later();
  });
}

void Server::Impl::serve_one_turn() {
  const Turns::Share share = turns_.next();
  while (const auto id = turns_.take(share)) {
    Session* session = sessions_.find(*id);
    if (session == nullptr) continue;
    const TimePoint began = Clock::now();
    serve_in_turn(*session);
    turns_.spent(share, Clock::now() - began);
  }
  session_quota_used_ = false;  // the reactor serves others
  return_memory();
}

// What it waited for is not known any more: replies to send, or bytes to read.
void Server::Impl::serve_in_turn(Session& session) {
  session.waits_turn = false;
  const std::size_t used_before = memory_.used();
  End end = guarded([&] { return resume(session); });
  const bool reads = end == End::kAlive && !session.paused && !session.eof;
  if (reads) end = guarded([&] { return receive(session); });
  count_added(session, used_before);
  settle(session, end);
  flush_queued();
}

// What a report says of clients that wait.
std::vector<StoreWait> Server::Impl::waits() const {
  using std::chrono::milliseconds;
  const TimePoint now = Clock::now();
  std::vector<StoreWait> all;
  std::map<std::string, std::size_t> waiting;  // for each key
  sessions_.for_each([&](const Session& session) {
    const Store::Pending pending = store_.pending(session.store_id());
    if (pending.missing == 0) return;
    StoreWait& wait = all.emplace_back();
    wait.address = net::address_text(session.from);
    wait.port = ntohs(session.from.sin6_port);
    wait.key = shown(pending.name);
    wait.keys = static_cast<int>(pending.missing);
    wait.waited = std::chrono::duration_cast<milliseconds>(now - session.waits_since);
    ++waiting[wait.key];
  });
  std::stable_sort(all.begin(), all.end(), [&](const StoreWait& one, const StoreWait& other) {
    return waiting[one.key] < waiting[other.key];
  });
  if (all.size() > kStoreWaitsMax) all.resize(kStoreWaitsMax);
  return all;
}

}  // namespace ddprun::store
