#include <spdlog/logger.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "base/duration_text.hpp"
#include "rendezvous/coordinator/first_bytes.hpp"
#include "rendezvous/coordinator/server_impl.hpp"
#include "rendezvous/protocol/codec.hpp"

namespace ddprun::coordinator {

namespace {

constexpr const char* kSecretWanted =
    "this coordinator serves only agents that have its secret; pass --rdzv-secret-file on every "
    "node of the run, or give all the same ~/.config/ddprun/secret";
constexpr const char* kCertificateWanted =
    "this coordinator serves only agents with a certificate of its CA; pass --rdzv-tls-cert, "
    "--rdzv-tls-key and --rdzv-tls-ca on every node of the run";

}  // namespace

Link* Server::Impl::find(std::uint64_t id) {
  Link* link = links_.find(id);
  return link == nullptr || link->state == LinkState::kClosed ? nullptr : link;
}

void Server::Impl::on_event(std::uint64_t id, std::uint32_t events) {
  Link* link = find(id);
  if (link == nullptr) return;
  if (link->state == LinkState::kClosing) {
    const std::uint32_t end = link->ended ? net::kGone | net::kPeerEnded : net::kGone;
    if ((events & end) != 0) return mark_closed(*link);
  } else if (link->state == LinkState::kAtGate) {
    return mark_closed(*link);  // it has gone
  } else if ((events & (link->is_read() ? ~net::kWritable : net::kGone)) != 0) {
    read_some(*link);
  }
  if ((events & net::kWritable) != 0 && link->state != LinkState::kClosed) flush(*link);
}

void Server::Impl::read_some(Link& link) {
  try {
    receive(link);
  } catch (const std::bad_alloc&) {
    lose(link, "the coordinator is out of memory");  // affects only the link being served
  }
}

// Reads once per event, so that a peer that floods is not read more often than others.
void Server::Impl::receive(Link& link) {
  const ssize_t received = ::recv(link.fd, receive_buffer_.get(), kReceiveBytes, 0);
  if (received < 0) {
    if (errno == ECONNRESET || errno == EPIPE) return lose(link, "connection reset");
    if (errno != EAGAIN && errno != EINTR) lose(link, "the connection broke", By::kNetwork);
    return;
  }
  if (received == 0) return lose(link, "connection closed");
  const std::string_view input(receive_buffer_.get(), static_cast<std::size_t>(received));
  if (input.size() == kReceiveBytes) peer_floods_ = true;
  if (link.tls != nullptr && !link.tls->is_established()) return await_turn(link, input);
  if (link.tls != nullptr) return open_sealed(link, input);
  understand(link, input);
}

void Server::Impl::understand(Link& link, std::string_view input) {
  if (link.state == LinkState::kArriving) return arrive(link, input);
  if (link.state == LinkState::kHttp) return ask(link, input);
  if (link.state != LinkState::kAgent) return;
  digest(link, input);
  if (link.state == LinkState::kAgent) rest_if_due(link);
}

void Server::Impl::arrive(Link& link, std::string_view input) {
  link.held.append(input);
  const Speaks speaks = protocol_of(link.held);
  if (speaks != Speaks::kUnknownYet && speaks != Speaks::kAgent) unheard_.remove(link.id);
  if (link.tls != nullptr && speaks != Speaks::kUnknownYet && speaks != Speaks::kAgent) {
    log_once(link, "TLS: no agent");
    return lose(link, "no agent");
  }
  switch (speaks) {
    case Speaks::kUnknownYet:
      return set_due(link);
    case Speaks::kTls:
      return begin_tls(link);
    case Speaks::kAgent: {
      const std::string first = std::exchange(link.held, {});
      return begin_agent(link, std::string_view(first).substr(sizeof(protocol::kMagic)));
    }
    case Speaks::kHttp:
      link.state = LinkState::kHttp;
      set_due(link);
      return ask(link, {});
    case Speaks::kStore:
      return hand_to_store(link);
  }
}

void Server::Impl::hand_to_store(Link& link) {
  const auto answer = gate_.of(gate_.is_open() ? std::string() : net::address_text(link.from));
  if (answer != StoreGate::Answer::kWelcome) return wait_at_gate(link);
  adopt_in_store(link);
}

void Server::Impl::adopt_in_store(Link& link) {
  const std::string received = std::exchange(link.held, {});
  sockaddr_storage from{};
  static_assert(sizeof(from) >= sizeof(link.from));
  std::memcpy(&from, &link.from, sizeof(link.from));
  reactor_.unwatch(link);
  const int socket = std::exchange(link.fd, -1);
  mark_closed(link);
  store_->adopt(socket, from, received);
}

void Server::Impl::begin_agent(Link& link, std::string_view input) {
  link.state = LinkState::kAgent;
  set_due(link);
  if (++agents_ > options_.limits.agents) {
    const std::string most = std::to_string(options_.limits.agents);
    return refuse(link, {protocol::RefusalCode::kRunFull,
                         "this coordinator has " + most +
                             " agents, its maximum; raise --max-agents of ddprun-rdzvd, or "
                             "use another coordinator",
                         std::chrono::seconds(1)});
  }
  if (tls_ != nullptr && link.tls == nullptr) {
    ++rejected_;
    const bool by_secret = tls_->has_secret();
    log_once(link, by_secret ? "an agent without the secret" : "an agent without a certificate");
    return refuse(
        link,
        {protocol::RefusalCode::kProtocol, by_secret ? kSecretWanted : kCertificateWanted, {}});
  }
  if (!input.empty()) digest(link, input);
}

void Server::Impl::digest(Link& link, std::string_view input) {
  const bool continued = link.reader != nullptr;
  protocol::FrameReader& reader = continued ? *link.reader : *spare_reader_;
  reader.feed(input);
  const std::size_t frames = parse(link, reader);
  link.budget.spend(frames, input.size(), options_.limits.link_frames, Clock::now());
  const bool reads_on = link.state == LinkState::kAgent;
  if (continued) {
    if (!reads_on || reader.pending() == 0) link.reader.reset();
  } else if (!reads_on) {
    spare_reader_ = std::make_unique<protocol::FrameReader>();
  } else if (reader.pending() > 0) {
    auto fresh = std::make_unique<protocol::FrameReader>();
    link.reader = std::exchange(spare_reader_, std::move(fresh));
  }
  if (link.state != LinkState::kClosed)
    count_partial(link, link.reader ? link.reader->pending() : 0);
}

std::size_t Server::Impl::parse(Link& link, protocol::FrameReader& reader) {
  std::size_t frames = 0;
  for (; link.state == LinkState::kAgent; ++frames) {
    auto body = reader.next();
    if (!body) {
      log_once(link, body.error().sentence);
      lose(link, body.error().sentence);
      break;
    }
    if (!body->has_value()) break;
    forget_partial(link);
    auto message = protocol::decode(**body);
    if (message) {
      on_message(link, std::move(*message));
    } else if (message.error().kind == ErrorKind::kUnsupported) {
      send(link, frame_of(protocol::Unknown{message.error().sentence}));
    } else {
      log_once(link, message.error().sentence);
      lose(link, message.error().sentence);
    }
  }
  return frames;
}

void Server::Impl::rest_if_due(Link& link) {
  const TimePoint read_at = link.budget.read_at();
  if (link.resting || read_at <= Clock::now()) return;
  link.resting = true;
  watch(link);
  resting_.emplace(read_at, link.id);
  if (resting_.begin()->second == link.id) arm_rest();
}

void Server::Impl::arm_rest() {
  if (resting_.empty()) return;
  rest_timer_.expires_at(resting_.begin()->first);
  rest_timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (error || self->closed_) return;
    const auto due = self->resting_.upper_bound(Clock::now());
    for (auto at = self->resting_.begin(); at != due; at = self->resting_.erase(at)) {
      Link* link = self->find(at->second);
      if (link == nullptr) continue;
      link->resting = false;
      self->watch(*link);
    }
    self->arm_rest();
  });
}

// Who is in the middle of a message soon completes it. If too many are, those go first that have
// been for the longest time: peers that hoard do not crowd out an honest one.
void Server::Impl::count_partial(Link& link, std::size_t bytes) {
  if (bytes == 0) return forget_partial(link);
  partial_.give_back(std::exchange(link.partial, 0));
  while (!partial_.try_take(bytes)) {
    Link& oldest = incomplete_.empty() ? link : *links_.find(incomplete_.front());
    const std::string cause = "incomplete messages of all agents exceed partial_bytes = " +
                              std::to_string(options_.limits.partial_bytes);
    log_once(oldest, cause);
    lose(oldest, cause);
    if (&oldest == &link) return;
  }
  link.partial = bytes;
  if (!link.incomplete) link.incomplete = incomplete_.insert(incomplete_.end(), link.id);
}

void Server::Impl::forget_partial(Link& link) {
  partial_.give_back(std::exchange(link.partial, 0));
  if (link.incomplete) incomplete_.erase(*link.incomplete);
  link.incomplete.reset();
}

void Server::Impl::send(Link& link, SharedFrame frame) {
  const bool open = link.state == LinkState::kAgent || link.state == LinkState::kHttp;
  if (!open || link.mute) return;
  enqueue(link, link.tls == nullptr ? std::move(frame) : sealed(link, *frame));
}

void Server::Impl::enqueue(Link& link, SharedFrame frame) {
  const auto overflows = [&] {
    return !link.outbox.empty() &&
           (link.outbox.behind() + frame->bytes.size() > options_.limits.link_unsent_bytes ||
            unsent_.used() > options_.limits.unsent_bytes);
  };
  if (overflows()) flush(link);
  if (link.state == LinkState::kClosed || link.mute) return;
  if (overflows()) {
    const std::string cause = "does not read its messages";
    log_once(link, cause);
    return lose(link, cause);
  }
  link.outbox.push(std::move(frame));
  if (!std::exchange(link.queued, true)) to_flush_.push_back(link.id);
}

void Server::Impl::flush(Link& link) {
  const net::Sent sent = net::send_all(link.fd, link.outbox);
  if (sent == net::Sent::kBroken) {
    // It may have sent something before it closed: reading finds that, and the end.
    link.outbox.clear();
    link.mute = true;
    if (link.state == LinkState::kClosing) return mark_closed(link);
  }
  if (link.state == LinkState::kClosing && sent == net::Sent::kAll && !link.ended) {
    link.ended = true;
    // If the peer has sent more, close() would discard data that it has not read yet.
    (void)::shutdown(link.fd, SHUT_WR);
  }
  watch(link);
}

void Server::Impl::watch(Link& link) {
  std::uint32_t wanted = link.outbox.empty() ? 0U : net::kWritable;
  if (link.state != LinkState::kClosing && link.is_read()) wanted |= net::kReadable;
  if (link.ended || link.state == LinkState::kAtGate) wanted |= net::kPeerEnded;
  if (wanted == 0) wanted = net::kGone;  // which is reported anyway
  (void)reactor_.watch(link, wanted);
}

void Server::Impl::close_link(Link& link) {
  if (link.state == LinkState::kClosing || link.state == LinkState::kClosed) return;
  if (link.state == LinkState::kAgent) {
    --agents_;
    link.awaited = !link.outbox.empty();
    if (link.awaited) ++leaving_;
  }
  link.state = LinkState::kClosing;
  link.run.reset();
  forget_handshake(link);
  forget_due(link);
  set_due(link);
  if (!std::exchange(link.queued, true)) to_flush_.push_back(link.id);
}

/// The connection ended unexpectedly.
void Server::Impl::lose(Link& link, const std::string& evidence, By by) {
  if (link.state == LinkState::kClosed) return;
  if (link.run != nullptr) {
    const bool by_network = by == By::kNetwork;
    lost_[link.run].links.push_back({round::LinkId(link.id), evidence, by_network});
  }
  mark_closed(link);
}

void Server::Impl::mark_closed(Link& link) {
  if (link.state == LinkState::kClosed) return;
  if (link.state == LinkState::kAgent) --agents_;
  if (link.awaited) --leaving_;
  forget_leader(link);
  link.state = LinkState::kClosed;
  link.run.reset();
  forget_due(link);
  forget_partial(link);
  forget_handshake(link);
  closed_links_.push_back(link.id);
}

void Server::Impl::set_due(Link& link) {
  if (link.due) return;
  due_.emplace_back(Clock::now() + options_.limits.idle_timeout, link.id);
  link.due = std::prev(due_.end());
  arm_idle_timeout();
}

void Server::Impl::forget_due(Link& link) {
  unheard_.remove(link.id);
  if (link.due) due_.erase(*link.due);
  link.due.reset();
}

void Server::Impl::arm_idle_timeout() {
  if (idle_timeout_armed_ || due_.empty()) return;
  idle_timeout_armed_ = true;
  idle_timeout_.expires_at(due_.front().first);
  idle_timeout_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    self->idle_timeout_armed_ = false;
    if (error || self->closed_) return;
    self->drain();
    if (self->closed_) return;
    self->close_idle_links();
    self->settle_all();
    self->arm_idle_timeout();
  });
}

void Server::Impl::close_idle_links() {
  const TimePoint now = Clock::now();
  while (!due_.empty() && due_.front().first <= now) {
    Link* link = find(due_.front().second);
    if (link == nullptr) {
      due_.pop_front();
      continue;
    }
    if (link->state != LinkState::kClosing) {
      if (link->tls != nullptr && !link->tls->is_established()) ++rejected_;
      log_once(*link,
               "no complete first message within " + duration_text(options_.limits.idle_timeout));
    }
    mark_closed(*link);
  }
}

// Ends the handling of every event: reports lost connections to their runs, sends frames, closes
// and erases closed links.
void Server::Impl::settle_all() {
  while (!lost_.empty() || !to_flush_.empty()) {
    while (!lost_.empty()) {
      const auto lost = lost_.extract(lost_.begin());
      step(lost.key(), std::move(lost.mapped()));
    }
    for (const std::uint64_t id : std::exchange(to_flush_, {})) {
      Link* link = find(id);
      if (link == nullptr) continue;
      link->queued = false;
      flush(*link);
    }
  }
  look_at_gate();
  for (const std::uint64_t id : closed_links_) links_.erase(id);
  if (!closed_links_.empty()) reactor_.resume_accepting();
  closed_links_.clear();
  if (unfinished_ == 0) settled_.cancel();
}

void Server::Impl::log_once(const Link& link, const std::string& cause) {
  if (!options_.log) return;
  // The same sentence with another number is not logged again: random data would fill the log.
  std::string kind = cause;
  std::erase_if(kind, [](char one) { return one >= '0' && one <= '9'; });
  LogQuota& quota = closed_quotas_.of(kind);
  const bool is_new = logged_.is_new(link, kind) && quota.try_take(Clock::now());
  const std::size_t omitted = is_new ? quota.take_omitted() : 0;
  if (omitted > 0) options_.log->warn("omitted {} lines like the next: too many", omitted);
  options_.log->log(is_new ? spdlog::level::warn : spdlog::level::debug,
                    "closed a connection: {} peer={}", cause, net::peer_text(link));
}

}  // namespace ddprun::coordinator
