#include "rendezvous/coordinator/links.hpp"

#include <spdlog/logger.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "base/address.hpp"
#include "base/format.hpp"
#include "rendezvous/protocol/codec.hpp"

namespace ddprun::coordinator {

namespace {

constexpr const char* kSecretWanted =
    "this coordinator serves only agents that have its secret; pass --rdzv-secret-file on every "
    "node of the run, or give all the same ~/.config/ddprun/secret";
constexpr const char* kCertificateWanted =
    "this coordinator serves only agents with a certificate of its CA; pass --rdzv-tls-cert, "
    "--rdzv-tls-key and --rdzv-tls-ca on every node of the run";

// A longer RSA key is warned about: its signatures cost a multiple.
constexpr int kRsaBitsMax = 2048;
// Bytes of a handshake that wait for their turn; a peer with more is closed.
constexpr std::size_t kHandshakeBytesMax = 64 * 1024;
// That handshakes wait is said once in this time, if many do.
constexpr std::chrono::minutes kUnprovenLineInterval{10};
constexpr std::size_t kManyHandshakes = 16;
// Log lines about connections that were closed, of one kind; kinds beyond the last share one.
constexpr int kClosedLinesMax = 64;
constexpr std::chrono::minutes kClosedLineInterval{1};
constexpr std::size_t kClosedKindsMax = 64;

std::string home_of(const Link& link) {
  return network_of(net::address_text(link.from));
}

}  // namespace

round::Peer peer_of(const Link& link) {
  sockaddr_in6 own{};
  socklen_t length = sizeof(own);
  // An accepted socket has a local address.
  (void)::getsockname(link.fd, reinterpret_cast<sockaddr*>(&own), &length);
  return {net::address_text(link.from), net::address_text(own), link.tls != nullptr};
}

Links::Links(net::Reactor& reactor, const ServerOptions& options)
    : reactor_(reactor),
      options_(options),
      unsent_(options.limits.unsent_bytes),
      partial_(options.limits.partial_bytes),
      closed_quotas_(kClosedLinesMax, kClosedLineInterval, kClosedKindsMax),
      unproven_quota_(1, kUnprovenLineInterval) {}

Result<void> Links::start() {
  auto tls = net::make_link_tls(options_.secret, options_.certificates);
  if (!tls) return tls.error();
  tls_ = std::move(*tls);
  if (tls_ != nullptr && tls_->rsa_bits() > kRsaBitsMax && options_.log) {
    options_.log->warn(
        "the key of the certificate is RSA of {} bits: every handshake, of strangers too, costs "
        "many times what one on P-256 costs, and several times one of RSA of {} bits",
        tls_->rsa_bits(), kRsaBitsMax);
  }
  receive_buffer_ = std::make_unique<char[]>(kReceiveBytes);
  spare_reader_ = std::make_unique<protocol::FrameReader>();
  return {};
}

void Links::clear() {
  resting_.clear();
  lost_.clear();
  to_flush_.clear();
  due_.clear();
  incomplete_.clear();
  unproven_ = {};
  unheard_ = {};
  links_.clear();
  closed_links_.clear();
  last_frame_.reset();
  agents_ = leaving_ = 0;
}

Link* Links::find(std::uint64_t id) const {
  Link* link = links_.find(id);
  return link == nullptr || link->state == LinkState::kClosed ? nullptr : link;
}

Link& Links::add(int socket, const sockaddr_storage& from) {
  return links_.add(socket, from, unsent_);
}

// Mostly the first bytes have been received already: a client of the store is then handed on
// without having been in our epoll set.
void Links::watch_new(Link& link) {
  const bool says_hello = link.state == LinkState::kAgent && link.due;
  if (link.tls == nullptr && (link.state == LinkState::kArriving || says_hello)) {
    unheard_.add(link.id, home_of(link));
  }
  const bool is_ready = link.state == LinkState::kClosed || link.state == LinkState::kAtGate;
  if (is_ready || reactor_.watch(link, net::kReadable)) return;
  log_once(link, "out of memory");
  lose(link, "the coordinator is out of memory");
}

// The oldest connection of the address that has most gives way, of those without a hello or without
// a proof: a peer that keeps the places of one address keeps out itself.
void Links::make_room() {
  const Unproven& most = unheard_.size() < unproven_.size() ? unproven_ : unheard_;
  if (most.size() == 0) return;
  Link& loser = *links_.find(most.loser());
  log_once(loser, "no hello yet, and another connection needs its place");
  mark_closed(loser);
}

void Links::turn_away(Link& link) {
  log_once(link, fmt::format("{} connections, no more than connections = {}",
                             options_.store.connections + 1, options_.store.connections));
  links_.erase(link.id);
}

void Links::read(Link& link) {
  const ssize_t received = ::recv(link.fd, receive_buffer_.get(), kReceiveBytes, 0);
  if (received < 0) {
    if (errno == ECONNRESET || errno == EPIPE) return lose(link, "connection reset");
    if (errno != EAGAIN && errno != EINTR) lose(link, "the connection broke", By::kNetwork);
    return;
  }
  if (received == 0) return lose(link, "connection closed");
  const std::string_view input(receive_buffer_.get(), static_cast<std::size_t>(received));
  if (input.size() == kReceiveBytes) peer_floods_ = true;
  if (link.tls == nullptr) return understand(link, input);
  link.tls->is_established() ? open_sealed(link, input) : await_turn(link, input);
}

void Links::understand(Link& link, std::string_view input) {
  if (link.state == LinkState::kArriving) return arrive(link, input);
  if (link.state == LinkState::kAgent) return decode(link, input);
  if (link.state != LinkState::kHttp) return;
  link.held.append(input);
  heard_ = HttpText{};
}

void Links::arrive(Link& link, std::string_view input) {
  link.held.append(input);
  const Speaks speaks = protocol_of(link.held);
  const bool may_be_agent = speaks == Speaks::kUnknownYet || speaks == Speaks::kAgent;
  if (!may_be_agent) unheard_.remove(link.id);
  if (link.tls != nullptr && !may_be_agent) {
    log_once(link, "TLS: no agent");
    return lose(link, "no agent");
  }
  switch (speaks) {
    case Speaks::kUnknownYet:
      return begin_idle_time(link);
    case Speaks::kTls:
      return begin_tls(link);
    case Speaks::kAgent: {
      const std::string first = std::exchange(link.held, {});
      return begin_agent(link, std::string_view(first).substr(sizeof(protocol::kMagic)));
    }
    case Speaks::kHttp:
      link.state = LinkState::kHttp;
      begin_idle_time(link);
      heard_ = HttpText{};
      return;
    case Speaks::kStore:
      heard_ = StoreClient{};
  }
}

void Links::begin_agent(Link& link, std::string_view input) {
  link.state = LinkState::kAgent;
  begin_idle_time(link);
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
  if (!input.empty()) decode(link, input);
}

void Links::decode(Link& link, std::string_view input) {
  protocol::FrameReader& reader = link.reader ? *link.reader : *spare_reader_;
  reader.feed(input);
  Messages messages;
  bool may_follow = true;
  while (may_follow) {
    auto body = reader.next();
    if (!body) {
      messages.emplace_back(body.error());
      break;
    }
    if (!body->has_value()) break;
    forget_partial(link);
    const auto& message = messages.emplace_back(protocol::decode(**body));
    may_follow = message || message.error().kind == ErrorKind::kUnsupported;
  }
  link.budget.spend(messages.size(), input.size(), options_.limits.link_frames, Clock::now());
  heard_ = std::move(messages);
}

void Links::answer_invalid(Link& link, const Error& error) {
  if (error.kind == ErrorKind::kUnsupported) return send(link, protocol::Unknown{error.sentence});
  log_once(link, error.sentence);
  lose(link, error.sentence);
}

void Links::finish(Link& link) {
  const bool reads_on = link.state == LinkState::kAgent;
  if (link.reader != nullptr) {
    if (!reads_on || link.reader->pending() == 0) link.reader.reset();
  } else if (!reads_on) {
    spare_reader_ = std::make_unique<protocol::FrameReader>();
  } else if (spare_reader_->pending() > 0) {
    auto fresh = std::make_unique<protocol::FrameReader>();
    link.reader = std::exchange(spare_reader_, std::move(fresh));
  }
  if (link.state == LinkState::kClosed) return;
  count_partial(link, link.reader ? link.reader->pending() : 0);
  if (link.state == LinkState::kAgent) rest_if_due(link);
}

void Links::drop_request(Link& link) {
  forget_partial(link);
  std::string().swap(link.held);
}

void Links::rest_if_due(Link& link) {
  const TimePoint read_at = link.budget.read_at();
  if (link.resting || read_at <= Clock::now()) return;
  link.resting = true;
  watch(link);
  resting_.emplace(read_at, link.id);
}

void Links::read_rested() {
  const auto due = resting_.upper_bound(Clock::now());
  for (auto at = resting_.begin(); at != due; at = resting_.erase(at)) {
    Link* link = find(at->second);
    if (link == nullptr) continue;
    link->resting = false;
    watch(*link);
  }
}

// Who is in the middle of a message soon completes it. If too many are, those go first that have
// been for the longest time: peers that hoard do not crowd out an honest one.
void Links::count_partial(Link& link, std::size_t bytes) {
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

void Links::forget_partial(Link& link) {
  partial_.give_back(std::exchange(link.partial, 0));
  if (link.incomplete) incomplete_.erase(*link.incomplete);
  link.incomplete.reset();
}

// link.held has the first bytes of the handshake, whose time is bounded.
void Links::begin_tls(Link& link) {
  begin_idle_time(link);
  const std::string first = std::exchange(link.held, {});
  if (tls_ == nullptr) {
    enqueue(link, std::string(net::kTlsRefusal));
    return reject(link,
                  "TLS: an agent with a secret or a certificate came, but this coordinator has "
                  "neither");
  }
  link.tls = net::TlsSession::accepting(tls_);
  unproven_.add(link.id, home_of(link));
  if (unproven_.size() > options_.limits.handshakes) {
    // An honest agent needs one round trip, so it is not the oldest of its network for long.
    Link& loser = *links_.find(unproven_.loser());
    const std::string cause = "more incomplete handshakes than handshakes = " +
                              std::to_string(options_.limits.handshakes);
    ++rejected_;
    log_once(loser, cause);
    lose(loser, cause);
    if (&loser == &link) return;
  }
  await_turn(link, first);
}

void Links::await_turn(Link& link, std::string_view input) {
  link.held.append(input);
  if (link.held.size() > kHandshakeBytesMax) return reject(link, "TLS: a handshake without end");
  link.waits_turn = true;
  unproven_.want_turn(link.id);
}

Link* Links::next_handshake() {
  while (const auto id = unproven_.next_turn(Clock::now())) {
    if (Link* link = find(*id)) return link;
  }
  return nullptr;
}

Links::Heard Links::continue_handshake(Link& link) {
  link.waits_turn = false;
  open_sealed(link, std::exchange(link.held, {}));
  return std::exchange(heard_, {});
}

void Links::end_handshake_turn(Link& link, TimePoint begun) {
  const TimePoint done = Clock::now();
  unproven_.spent(done - begun, done);
  if (link.state != LinkState::kClosed) watch(link);
}

void Links::watch_until_turn(Link& link) {
  if (!link.waits_turn || link.state == LinkState::kClosed) return;
  const bool many = unproven_.waiting() >= kManyHandshakes && options_.log;
  if (many && unproven_quota_.try_take(Clock::now())) {
    options_.log->warn(
        "{} handshakes wait: peers that have proved nothing get half of the time, one address "
        "after the other; peer={}",
        unproven_.waiting(), net::peer_text(link));
  }
  watch(link);
}

void Links::open_sealed(Link& link, std::string_view input) {
  std::string plain;
  const auto opened = link.tls->receive(input, plain);
  std::string answer = link.tls->take_output();
  if (!answer.empty() && !link.mute) enqueue(link, std::move(answer));
  if (link.state == LinkState::kClosed) return;
  if (!opened && !link.tls->is_established()) return reject(link, opened.error().sentence);
  if (!opened) {  // what preceded it could not be answered any more
    log_once(link, opened.error().sentence);
    return lose(link, opened.error().sentence);
  }
  if (link.tls->is_established()) unproven_.remove(link.id);
  if (!plain.empty()) understand(link, plain);
}

/// The peer has not proved who it is. It gets no sentence, only what TLS says.
void Links::reject(Link& link, const std::string& cause) {
  ++rejected_;
  log_once(link, cause);
  close(link);
  link.tls.reset();
}

bool Links::is_of_another_run(const Link& link, const std::string& run) const {
  return tls_ != nullptr && tls_->has_secret() && link.tls->run() != run;
}

void Links::send(Link& link, const SharedFrame& frame) {
  const bool open = link.state == LinkState::kAgent || link.state == LinkState::kHttp;
  if (!open || link.mute) return;
  if (link.tls != nullptr) return enqueue(link, link.tls->seal(frame->bytes));
  enqueue(link, frame);
}

void Links::send(Link& link, protocol::Message message) {
  if (last_frame_ == nullptr || !(last_message_ == message)) {
    last_frame_ = std::make_shared<Frame>(protocol::frame(protocol::encode(message)), unsent_);
    last_message_ = std::move(message);
  }
  send(link, last_frame_);
}

void Links::refuse(Link& link, protocol::Refused refused) {
  send(link, std::move(refused));
  close(link);
}

void Links::enqueue(Link& link, std::string bytes) {
  enqueue(link, std::make_shared<Frame>(std::move(bytes), unsent_));
}

void Links::enqueue(Link& link, SharedFrame frame) {
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
  queue(link);
}

void Links::queue(Link& link) {
  if (!std::exchange(link.queued, true)) to_flush_.push_back(link.id);
}

void Links::flush(Link& link) {
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

bool Links::flush_queued() {
  const std::vector<std::uint64_t> queued = std::exchange(to_flush_, {});
  for (const std::uint64_t id : queued) {
    Link* link = find(id);
    if (link == nullptr) continue;
    link->queued = false;
    flush(*link);
  }
  return !queued.empty();
}

void Links::watch(Link& link) {
  std::uint32_t wanted = link.outbox.empty() ? 0U : net::kWritable;
  if (link.state != LinkState::kClosing && link.is_read()) wanted |= net::kReadable;
  if (link.ended || link.state == LinkState::kAtGate) wanted |= net::kPeerEnded;
  if (wanted == 0) wanted = net::kGone;  // which is reported anyway
  (void)reactor_.watch(link, wanted);
}

void Links::hold_at_gate(Link& link) {
  link.state = LinkState::kAtGate;
  end_idle_time(link);
  watch(link);
}

int Links::release(Link& link) {
  reactor_.unwatch(link);
  const int socket = std::exchange(link.fd, -1);
  mark_closed(link);
  return socket;
}

void Links::close(Link& link) {
  if (link.state == LinkState::kClosing || link.state == LinkState::kClosed) return;
  if (link.state == LinkState::kAgent) {
    --agents_;
    link.awaited = !link.outbox.empty();
    if (link.awaited) ++leaving_;
  }
  link.state = LinkState::kClosing;
  link.run.reset();
  unproven_.remove(link.id);
  restart_idle_time(link);
  queue(link);
}

void Links::lose(Link& link, const std::string& evidence, By by) {
  if (link.state == LinkState::kClosed) return;
  if (link.run != nullptr) {
    const bool by_network = by == By::kNetwork;
    lost_[link.run].links.push_back({round::LinkId(link.id), evidence, by_network});
  }
  mark_closed(link);
}

std::optional<Links::Loss> Links::take_loss() {
  if (lost_.empty()) return std::nullopt;
  auto first = lost_.extract(lost_.begin());
  return Loss{first.key(), std::move(first.mapped())};
}

void Links::mark_closed(Link& link) {
  if (link.state == LinkState::kClosed) return;
  if (link.state == LinkState::kAgent) --agents_;
  if (link.awaited) --leaving_;
  link.state = LinkState::kClosed;
  link.run.reset();
  end_idle_time(link);
  forget_partial(link);
  unproven_.remove(link.id);
  closed_links_.push_back(link.id);
}

bool Links::erase_closed() {
  for (const std::uint64_t id : closed_links_) links_.erase(id);
  const bool any = !closed_links_.empty();
  closed_links_.clear();
  return any;
}

void Links::begin_idle_time(Link& link) {
  if (link.due) return;
  due_.emplace_back(Clock::now() + options_.limits.idle_timeout, link.id);
  link.due = std::prev(due_.end());
}

void Links::restart_idle_time(Link& link) {
  end_idle_time(link);
  begin_idle_time(link);
}

void Links::end_idle_time(Link& link) {
  unheard_.remove(link.id);
  if (link.due) due_.erase(*link.due);
  link.due.reset();
}

std::optional<TimePoint> Links::deadline() const {
  std::optional<TimePoint> next = unproven_.next_at();
  if (!due_.empty() && (!next || due_.front().first < *next)) next = due_.front().first;
  if (!resting_.empty() && (!next || resting_.begin()->first < *next)) {
    next = resting_.begin()->first;
  }
  return next;
}

bool Links::has_overdue() const {
  return !due_.empty() && due_.front().first <= Clock::now();
}

void Links::close_overdue() {
  while (has_overdue()) {
    Link& link = *links_.find(due_.front().second);
    if (link.state != LinkState::kClosing) {
      if (link.tls != nullptr && !link.tls->is_established()) ++rejected_;
      log_once(link,
               "no complete first message within " + duration_text(options_.limits.idle_timeout));
    }
    mark_closed(link);
  }
}

void Links::log_once(const Link& link, const std::string& cause) {
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
