#include "tests/failover/net.hpp"

#include <algorithm>

namespace ddprun::failover {

namespace {

// A kernel sends again what was not acknowledged, later and later; this bounds it.
constexpr Duration kSentAgainMax = seconds(2);

}  // namespace

Net::Net(Timeline& timeline, Random& random, const Options& options, Wake wake)
    : timeline_(timeline), random_(random), options_(options), wake_(std::move(wake)) {
  if (options_.latency_min == options_.latency_max) return;
  for (int from = 0; from < options_.hosts; ++from) {
    for (int to = 0; to < options_.hosts; ++to) {
      latency_.push_back(random_.between(options_.latency_min, options_.latency_max));
    }
  }
}

Duration Net::latency(int from, int to) {
  const auto direction = static_cast<std::size_t>(from * options_.hosts + to);
  const Duration between = latency_.empty() ? options_.latency_min : latency_.at(direction);
  const Duration base = from == to ? Duration(microseconds(50)) : between;
  return base + random_.between(Duration(0), base / 10);
}

bool Net::severed(int from, int to) const {
  if (off_.contains(to) || frozen_.contains(to) || frozen_.contains(from)) return true;
  return from != to && cut_.contains({from, to});
}

void Net::cut(int from, int to, bool is_cut) {
  if (is_cut) {
    cut_.insert({from, to});
  } else if (cut_.erase({from, to}) > 0) {
    resume_stalled();
  }
}

void Net::freeze(int host, bool is_frozen) {
  if (is_frozen) {
    frozen_.insert(host);
  } else if (frozen_.erase(host) > 0) {
    resume_stalled();
  }
}

void Net::power_off(int host) {
  off_.insert(host);
  for (const auto& socket : sockets_) {
    if (socket->host != host) continue;
    socket->is_closed = true;
    socket->is_connecting = false;
    socket->process = kNoProcess;
    socket->flight.clear();
  }
  std::erase_if(listeners_, [host](const auto& one) { return one.first.first == host; });
}

void Net::power_on(int host) {
  if (off_.erase(host) > 0) resume_stalled();
}

void Net::break_links(int left, int right) {
  for (const auto& socket : sockets_) {
    const bool between = (socket->host == left && socket->peer_host == right) ||
                         (socket->host == right && socket->peer_host == left);
    if (!between || socket->is_closed || socket->is_connecting || !socket->ended.empty()) continue;
    socket->flight.clear();
    socket->has_reset = true;
    socket->ended = "connection reset";
    wake(static_cast<SocketId>(&socket - sockets_.data()));
  }
}

void Net::wake(SocketId socket) {
  const ProcessId process = at(socket).process;
  if (process == kNoProcess) return;  // it is read when it is accepted
  news_[process].push_back(socket);
  wake_(process);
}

std::vector<SocketId> Net::take_news(ProcessId process) {
  const auto taken = news_.extract(process);
  return taken.empty() ? std::vector<SocketId>() : std::move(taken.mapped());
}

void Net::resume_stalled() {
  const TimePoint now = timeline_.now();
  for (auto at = stalled_.begin(); at != stalled_.end();) {
    const auto [id, since] = *at;
    if (severed(sockets_[static_cast<std::size_t>(id)]->host,
                sockets_[static_cast<std::size_t>(id)]->peer_host)) {
      ++at;
      continue;
    }
    at = stalled_.erase(at);
    const Duration longest = std::clamp<Duration>(now - since, milliseconds(1), kSentAgainMax);
    schedule(id, now + random_.between(Duration(milliseconds(1)), longest));
  }
}

bool Net::listen(ProcessId process, int host, int port) {
  const auto [at, is_new] = listeners_.try_emplace({host, port});
  if (!is_new) return false;
  at->second.process = process;
  at->second.number = ++listened_;
  listened_at_[process].emplace_back(host, port);
  return true;
}

void Net::unlisten(int host, int port) {
  auto closed = listeners_.extract({host, port});
  if (closed.empty()) return;
  for (const SocketId waiting : closed.mapped().backlog) {
    at(waiting).is_closed = true;
    push(waiting, Reset{});
  }
}

bool Net::is_readable(int host, int port) const {
  const auto found = listeners_.find({host, port});
  return found != listeners_.end() && !found->second.backlog.empty();
}

SocketId Net::accept(int host, int port) {
  const auto found = listeners_.find({host, port});
  if (found == listeners_.end() || found->second.backlog.empty()) return kNoSocket;
  const SocketId accepted = found->second.backlog.front();
  found->second.backlog.pop_front();
  at(accepted).process = found->second.process;
  owned_[found->second.process].push_back(accepted);
  return accepted;
}

SocketId Net::make_socket(int host, int peer_host, ProcessId process) {
  auto socket = std::make_unique<Socket>();
  socket->host = host;
  socket->peer_host = peer_host;
  socket->process = process;
  sockets_.push_back(std::move(socket));
  const auto made = static_cast<SocketId>(sockets_.size()) - 1;
  if (process != kNoProcess) owned_[process].push_back(made);
  return made;
}

SocketId Net::connect(ProcessId process, int from, int host, int port) {
  const SocketId socket = make_socket(from, host, process);
  at(socket).is_connecting = true;
  knock({socket, host, port});
  return socket;
}

void Net::knock(Attempt attempt) {
  const Socket& client = at(attempt.socket);
  if (!client.is_connecting) return;
  if (severed(client.host, attempt.host)) return knock_later(attempt);
  timeline_.after(latency(client.host, attempt.host), [this, attempt] { arrive(attempt); });
}

void Net::knock_later(Attempt attempt) {
  const Duration pause = attempt.retry;
  attempt.retry *= 2;
  timeline_.after(pause, [this, attempt] { knock(attempt); });
}

void Net::arrive(const Attempt& attempt) {
  Socket& client = at(attempt.socket);
  if (!client.is_connecting) return;
  const bool no_answer = severed(client.host, attempt.host) || severed(attempt.host, client.host);
  if (no_answer) return knock_later(attempt);
  const auto found = listeners_.find({attempt.host, attempt.port});
  const std::uint64_t listener = found == listeners_.end() ? 0 : found->second.number;
  timeline_.after(latency(attempt.host, client.host),
                  [this, attempt, listener] { establish(attempt, listener); });
}

void Net::establish(const Attempt& attempt, std::uint64_t listener) {
  const SocketId id = attempt.socket;
  Socket& client = at(id);
  if (!client.is_connecting) return;
  client.is_connecting = false;
  if (listener == 0) {
    client.is_refused = true;
    client.ended = "connection refused";
    return wake(id);
  }
  const SocketId server = make_socket(client.peer_host, client.host, kNoProcess);
  Socket& self = at(id);
  self.peer = server;
  at(server).peer = id;
  at(server).listener = listener;
  at(server).listener_port = attempt.port;
  self.is_up = true;
  push(id, Accepted{});
  wake(id);
}

void Net::push(SocketId from, Packet packet) {
  Socket& socket = at(from);
  if (off_.contains(socket.host)) return;
  const TimePoint arrival = timeline_.now() + latency(socket.host, socket.peer_host);
  socket.last_arrival = std::max(socket.last_arrival, arrival);
  socket.flight.emplace_back(socket.last_arrival, std::move(packet));
  if (!stalled_.contains(from)) schedule(from, socket.flight.front().first);
}

void Net::schedule(SocketId from, TimePoint when) {
  if (std::exchange(at(from).is_scheduled, true)) return;
  timeline_.at(when, [this, from] { pump(from); });
}

void Net::pump(SocketId from) {
  Socket& socket = at(from);
  socket.is_scheduled = false;
  if (socket.flight.empty()) return;
  if (severed(socket.host, socket.peer_host)) {
    stalled_.emplace(from, timeline_.now());
    return;
  }
  if (socket.flight.front().first > timeline_.now()) {
    return schedule(from, socket.flight.front().first);
  }
  Packet packet = std::move(socket.flight.front().second);
  socket.flight.pop_front();
  if (!socket.flight.empty()) schedule(from, socket.flight.front().first);
  if (socket.peer != kNoSocket) deliver(socket.peer, std::move(packet));
}

void Net::deliver(SocketId to, Packet packet) {
  Socket& socket = at(to);
  if (std::holds_alternative<Accepted>(packet)) return take(to, Accepted{});
  auto* message = std::get_if<protocol::Message>(&packet);
  if (socket.is_closed) {
    const bool answers = message != nullptr && !std::exchange(socket.has_reset, true);
    if (answers) push(to, Reset{});
    return;
  }
  if (!socket.ended.empty()) return;
  if (message != nullptr) {
    socket.inbox.push_back(std::move(*message));
  } else {
    socket.ended = std::holds_alternative<Fin>(packet) ? "connection closed" : "connection reset";
  }
  wake(to);
}

void Net::take(SocketId to, Accepted) {
  Socket& socket = at(to);
  const auto found = listeners_.find({socket.host, socket.listener_port});
  if (found != listeners_.end() && found->second.number == socket.listener) {
    found->second.backlog.push_back(to);
    return wake_(found->second.process);
  }
  socket.is_closed = true;
  socket.has_reset = true;
  push(to, Reset{});
}

void Net::send(SocketId id, protocol::Message message) {
  const Socket& socket = at(id);
  if (!socket.is_closed && !socket.is_connecting && socket.ended.empty()) {
    push(id, std::move(message));
  }
}

// What was received and not read makes it a reset.
void Net::close(SocketId id) {
  Socket& socket = at(id);
  if (socket.is_closed) return;
  const bool is_open = !socket.is_connecting && socket.ended.empty();
  const bool unread = !socket.inbox.empty();
  socket.is_closed = true;
  socket.is_connecting = false;
  socket.process = kNoProcess;
  socket.inbox.clear();
  if (!is_open) return;
  if (unread) {
    socket.has_reset = true;
    return push(id, Reset{});
  }
  push(id, Fin{});
}

void Net::end_process(ProcessId process) {
  std::vector<std::pair<int, int>> listened = std::move(listened_at_[process]);
  std::sort(listened.begin(), listened.end());
  for (const auto& where : listened) {
    const auto found = listeners_.find(where);
    const bool is_own = found != listeners_.end() && found->second.process == process;
    if (is_own) unlisten(where.first, where.second);
  }
  std::vector<SocketId> owned = std::move(owned_[process]);
  std::sort(owned.begin(), owned.end());
  for (const SocketId socket : owned) {
    if (at(socket).process == process) close(socket);
  }
  for (auto* had : {&owned_, &news_}) had->erase(process);
  listened_at_.erase(process);
}

}  // namespace ddprun::failover
