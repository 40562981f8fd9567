#include "agent/worker_link/server.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <tuple>
#include <utility>

#include "agent/worker_link/exit_watch.hpp"
#include "base/quota.hpp"
#include "net/bounded_sessions.hpp"

namespace ddprun::worker_link {

namespace asio = boost::asio;
// Sockets of packets: this Boost has no such protocol, and they are only accepted and waited for.
using Protocol = asio::local::stream_protocol;
using Sessions = net::BoundedSessions<Protocol>;

namespace {

constexpr auto kReadable = asio::socket_base::wait_read;
// Connections of a worker itself, and as many of processes below it; another one is closed.
constexpr std::size_t kConnectionsPerRank = 16;
// Connections beyond those of all ranks, to close the ones that are too many.
constexpr std::size_t kConnectionsSpare = 16;
// How long accepting pauses when the process has no descriptor left.
constexpr std::chrono::seconds kAcceptPause{1};
// Between attempts to send a round to a worker that does not read; the next round replaces it.
constexpr Duration kResendInterval = std::chrono::milliseconds(20);
// What the kernel holds for a worker that survives: two rounds.
constexpr int kSendBufferBytes = 256 * 1024;
// New connections whose owner is looked up at once, and the interval of more; others are closed.
constexpr int kLookupBurst = 1024;
constexpr Duration kLookupInterval = std::chrono::milliseconds(10);

struct Client {
  Client(Sessions::Session connected, Target::Owner of)
      : session(std::move(connected)),
        owner(of),
        timer(session->socket.get_executor()),
        pause(session->socket.get_executor()),
        resend(session->socket.get_executor()) {}

  Sessions::Session session;
  Target::Owner owner;
  std::shared_ptr<PageView> page{};
  bool exceeded = false;     // a section was, and was told
  asio::steady_timer timer;  // for the next look at the sections
  asio::steady_timer pause;  // while it sends too fast
  bool survives = false;
  std::vector<std::uint8_t> unsent{};  // a round for which there was no room
  Round unsent_round{};                //
  std::optional<Round> pushed{};       // that it got, and has not joined
  asio::steady_timer resend;           //
  LogQuota packets{kPacketBurst, kPacketInterval};
};
using ClientPtr = std::shared_ptr<Client>;

void send_stop(Client& client) {
  auto& socket = client.session->socket;
  if (!socket.is_open()) return;
  const std::array<std::uint8_t, kPacketHeaderBytes> packet{
      kLinkVersion, static_cast<std::uint8_t>(PacketKind::kStop)};
  // One that does not fit follows others, and the page says everything.
  const ssize_t ignored =
      ::send(socket.native_handle(), packet.data(), packet.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  static_cast<void>(ignored);
}

void make_room_for_rounds(Client& client) {
  // Without it a round may not fit at once.
  const int ignored = ::setsockopt(client.session->socket.native_handle(), SOL_SOCKET, SO_SNDBUF,
                                   &kSendBufferBytes, sizeof(kSendBufferBytes));
  static_cast<void>(ignored);
}

std::shared_ptr<const ExitWatch::Word> life_of(const Client& client) {
  return {client.page, &client.page->alive()};
}

void cancel_timers(Client& client) {
  client.timer.cancel();
  client.pause.cancel();
  client.resend.cancel();
}

}  // namespace

class Server::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(const asio::any_io_executor& executor, Target& target, std::string path)
      : target_(&target), path_(std::move(path)), exits_(executor) {}

  static asio::awaitable<void> serve(std::shared_ptr<Impl> self, Sessions::Session session);
  void ask_to_stop(int signal);
  void close();
  [[nodiscard]] std::optional<LastStep> last_step(WorkerNumber worker) const;
  [[nodiscard]] bool is_linked(WorkerNumber worker) const;
  [[nodiscard]] ClientPtr survivor(WorkerNumber worker) const;
  [[nodiscard]] bool push(WorkerNumber worker, const PushedRound& round);
  static void look_again(const std::shared_ptr<Impl>& self, WorkerNumber worker);
  void forget(WorkerNumber worker);

 private:
  [[nodiscard]] ClientPtr admit(const Sessions::Session& session);
  /// Whether the link continues.
  [[nodiscard]] static bool receive(const std::shared_ptr<Impl>& self, const ClientPtr& client);
  [[nodiscard]] bool take_page(const ClientPtr& client, const Received& received);
  /// Whether the link continues.
  [[nodiscard]] bool act(Client& client, const Packet& packet);
  void watch_life(const Client& client);
  static void send_round(const ClientPtr& client);
  static void look(const std::shared_ptr<Impl>& self, const ClientPtr& client);
  void drop(const ClientPtr& client);

  Target* target_;  // null: closed
  std::string path_;
  int stop_signal_ = 0;
  ExitWatch exits_;
  LogQuota lookups_{kLookupBurst, kLookupInterval};
  std::vector<ClientPtr> clients_;
  // Steps of links that have ended, and when that was.
  std::map<WorkerNumber, std::pair<LastStep, TimePoint>> left_;
};

asio::awaitable<void> Server::Impl::serve(std::shared_ptr<Impl> self, Sessions::Session session) {
  const ClientPtr client = self->admit(session);
  if (client == nullptr) co_return;
  net::close_after(session, kHelloMax);
  while (true) {
    const auto [failed] = co_await session->socket.async_wait(kReadable, net::kAwaitTuple);
    if (failed || !receive(self, client)) break;
    while (!client->packets.try_take(Clock::now())) {
      client->pause.expires_after(kPacketInterval);
      const auto [cancelled] = co_await client->pause.async_wait(net::kAwaitTuple);
      static_cast<void>(cancelled);  // the link has ended: the next wait fails
    }
  }
  self->drop(client);
}

ClientPtr Server::Impl::admit(const Sessions::Session& session) {
  const auto pid = peer_of(session->socket.native_handle());
  if (!pid || target_ == nullptr || !lookups_.try_take(Clock::now())) return nullptr;
  const auto owner = target_->owner_of(*pid);
  if (!owner) return nullptr;
  // What it has started cannot take the place of the worker itself.
  const auto connected = std::count_if(clients_.begin(), clients_.end(), [&](const auto& client) {
    return client->owner.worker == owner->worker && client->owner.is_itself == owner->is_itself;
  });
  if (static_cast<std::size_t>(connected) >= kConnectionsPerRank) return nullptr;
  clients_.push_back(std::make_shared<Client>(session, *owner));
  return clients_.back();
}

bool Server::Impl::receive(const std::shared_ptr<Impl>& self, const ClientPtr& client) {
  const Received received = worker_link::receive(client->session->socket.native_handle());
  const bool may_go_on = self->take_page(client, received);
  if (received.page >= 0) ::close(received.page);
  if (!may_go_on || self->target_ == nullptr) return false;
  if (received.state == Received::State::kNothing) return true;
  client->session->limit.cancel();
  if (!self->act(*client, *received.packet)) return false;
  look(self, client);
  return true;
}

// The first packet, and no other, brings the page.
bool Server::Impl::take_page(const ClientPtr& client, const Received& received) {
  if (received.state == Received::State::kNothing) return true;
  if (received.state == Received::State::kEnd || !received.packet) return false;
  const bool is_hello = std::holds_alternative<Hello>(*received.packet);
  const bool is_first = client->page == nullptr;
  if (is_hello != is_first || is_hello != (received.page >= 0)) return false;
  if (!is_first) return true;
  client->page = PageView::map(received.page);
  if (client->page == nullptr) return false;
  if (stop_signal_ != 0) {
    client->page->ask_to_stop(stop_signal_);
    send_stop(*client);
  }
  return true;
}

bool Server::Impl::act(Client& client, const Packet& packet) {
  const WorkerNumber worker = client.owner.worker;
  if (std::holds_alternative<Ready>(packet)) target_->hear(worker, Ready{});
  if (const auto* written = std::get_if<Checkpoint>(&packet)) target_->hear(worker, *written);
  if (std::holds_alternative<Survives>(packet)) {
    if (!client.owner.is_itself) return false;  // the worker may not survive with it
    if (!std::exchange(client.survives, true)) {
      make_room_for_rounds(client);
      watch_life(client);
      target_->hear(worker, Survives{});
    }
  }
  // One that has been replaced meanwhile is not taken.
  const auto* joined = std::get_if<Joined>(&packet);
  if (joined != nullptr && client.unsent.empty() && client.pushed == joined->round) {
    client.pushed.reset();
    target_->hear(worker, *joined);
  }
  return true;
}

void Server::Impl::watch_life(const Client& client) {
  exits_.watch(life_of(client), [self = weak_from_this(), worker = client.owner.worker] {
    const auto impl = self.lock();
    const bool known = impl && impl->target_ != nullptr && impl->survivor(worker) != nullptr;
    if (known) impl->target_->hear(worker, Exits{});
  });
}

ClientPtr Server::Impl::survivor(WorkerNumber worker) const {
  const auto found = std::find_if(clients_.begin(), clients_.end(), [&](const auto& client) {
    return client->owner.worker == worker && client->survives;
  });
  return found == clients_.end() ? nullptr : *found;
}

bool Server::Impl::push(WorkerNumber worker, const PushedRound& round) {
  const ClientPtr client = survivor(worker);
  if (client == nullptr) return false;
  auto packet = round_packet(round);
  if (!packet) return false;
  client->unsent = std::move(*packet);
  client->unsent_round = round.number;
  send_round(client);
  return true;
}

// A worker that never reads is found out by the time it may take to join.
void Server::Impl::send_round(const ClientPtr& client) {
  auto& socket = client->session->socket;
  if (!socket.is_open() || client->unsent.empty()) return;
  const ssize_t sent = ::send(socket.native_handle(), client->unsent.data(), client->unsent.size(),
                              MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent >= 0) {
    client->unsent = {};
    client->pushed = client->unsent_round;
    return;
  }
  client->resend.expires_after(kResendInterval);
  client->resend.async_wait([client](const boost::system::error_code& why) {
    if (!why) send_round(client);
  });
}

void Server::Impl::look_again(const std::shared_ptr<Impl>& self, WorkerNumber worker) {
  const std::vector<ClientPtr> all = self->clients_;
  for (const ClientPtr& client : all) {
    if (client->owner.worker != worker || client->page == nullptr) continue;
    client->exceeded = false;
    look(self, client);
  }
}

void Server::Impl::forget(WorkerNumber worker) {
  const std::vector<ClientPtr> all = clients_;
  for (const ClientPtr& client : all) {
    if (client->owner.worker != worker) continue;
    boost::system::error_code ignored;  // it is closed either way
    client->session->socket.close(ignored);
    drop(client);
  }
  left_.erase(worker);
}

// In this order: see ddprun_worker_section_begin().
void Server::Impl::look(const std::shared_ptr<Impl>& self, const ClientPtr& client) {
  const bool is_watched = self->target_ != nullptr && client->session->socket.is_open();
  if (!is_watched || client->exceeded) return;
  client->page->looks();
  const TimePoint now = Clock::now();
  std::optional<Duration> next;
  for (const OpenSection& section : client->page->open_sections(now)) {
    const Duration left = section.limit - section.lasts;
    if (left <= Duration::zero()) {
      client->exceeded = true;
      return self->target_->hear(client->owner.worker, section);
    }
    next = std::min(left, next.value_or(left));
  }
  if (!next) return;
  client->page->will_look_at(now + *next);
  client->timer.expires_at(now + *next);
  client->timer.async_wait([self, client](const boost::system::error_code& why) {
    if (!why) look(self, client);
  });
}

void Server::Impl::drop(const ClientPtr& client) {
  cancel_timers(*client);
  if (std::erase(clients_, client) == 0) return;  // forgotten
  if (client->survives) exits_.forget(life_of(*client));
  const TimePoint now = Clock::now();
  const auto last = client->page == nullptr ? std::nullopt : client->page->last_step(now);
  if (!last) return;
  auto& left = left_.try_emplace(client->owner.worker, *last, now).first->second;
  if (last->step > left.first.step) left = {*last, now};
}

void Server::Impl::ask_to_stop(int signal) {
  stop_signal_ = signal;
  for (const ClientPtr& client : clients_) {
    if (client->page == nullptr) continue;
    client->page->ask_to_stop(signal);
    send_stop(*client);
  }
}

void Server::Impl::close() {
  target_ = nullptr;
  ::unlink(path_.c_str());
  for (const ClientPtr& client : clients_) cancel_timers(*client);
}

bool Server::Impl::is_linked(WorkerNumber worker) const {
  return std::any_of(clients_.begin(), clients_.end(), [worker](const ClientPtr& client) {
    return client->owner.worker == worker && client->page != nullptr;
  });
}

std::optional<LastStep> Server::Impl::last_step(WorkerNumber worker) const {
  const TimePoint now = Clock::now();
  std::optional<LastStep> last;
  const auto left = left_.find(worker);
  if (left != left_.end()) {
    last = left->second.first;
    last->ago += now - left->second.second;
    last->first_ago += now - left->second.second;
  }
  for (const ClientPtr& client : clients_) {
    if (client->owner.worker != worker || client->page == nullptr) continue;
    const auto its = client->page->last_step(now);
    if (its && (!last || its->step > last->step)) last = its;
  }
  return last;
}

Result<std::unique_ptr<Server>> Server::open(const asio::any_io_executor& executor,
                                             const std::string& path, int workers, Target& target) {
  const auto socket = listen(path);
  if (!socket) return socket.error();
  const auto impl = std::make_shared<Impl>(executor, target, path);
  const std::size_t places = 2 * kConnectionsPerRank * static_cast<std::size_t>(workers);
  auto sessions = std::make_shared<Sessions>(
      Protocol::acceptor(executor, Protocol(), *socket),
      net::SessionLimits{places + kConnectionsSpare, kAcceptPause},
      [impl](const Sessions::Session& session) { return Impl::serve(impl, session); });
  sessions->start();
  return std::unique_ptr<Server>(new Server(impl, std::move(sessions)));
}

Server::Server(std::shared_ptr<Impl> impl, std::shared_ptr<Sessions> sessions)
    : impl_(std::move(impl)), sessions_(std::move(sessions)) {}

Server::~Server() {
  impl_->close();
  sessions_->close();
}

void Server::ask_to_stop(int signal) {
  impl_->ask_to_stop(signal);
}

std::optional<LastStep> Server::last_step(WorkerNumber worker) const {
  return impl_->last_step(worker);
}

bool Server::is_linked(WorkerNumber worker) const {
  return impl_->is_linked(worker);
}

bool Server::survives(WorkerNumber worker) const {
  return impl_->survivor(worker) != nullptr;
}

bool Server::push(WorkerNumber worker, const PushedRound& round) {
  return impl_->push(worker, round);
}

void Server::look_again(WorkerNumber worker) {
  Impl::look_again(impl_, worker);
}

void Server::forget(WorkerNumber worker) {
  impl_->forget(worker);
}

}  // namespace ddprun::worker_link
