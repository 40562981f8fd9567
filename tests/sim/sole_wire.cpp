// Connections of the simulated world: what rendezvous/client/connection.hpp and
// rendezvous/coordinator/server.hpp are for real ones.
#include <algorithm>
#include <utility>

#include "rendezvous/client/membership.hpp"
#include "rendezvous/protocol/codec.hpp"
#include "tests/sim/sole_world.hpp"
#include "tests/sim/words.hpp"

namespace ddprun::sim {

using namespace protocol;

namespace {
// A kernel repeats its first packet about that often.
constexpr Duration kKnockAgain = seconds(1);
constexpr TimePoint kForEver{std::chrono::hours(1'000'000)};
}  // namespace

// The root reaches its own coordinator over loopback.
bool SoleWorld::cut_off(int id) const {
  if (frozen()) return true;
  if (is_root(id)) return false;
  const bool root_away = place_ == Coordinator::kInRoot && nodes_.front().partitioned;
  return root_away || nodes_[index(id)].partitioned;
}

Message SoleWorld::through_codec(Message message) const {
  if (bytes_ == Bytes::kPlain) return message;
  const auto decoded = decode(encode(message));
  require(decoded.has_value(), "a message of ours cannot be read back: " + words(message));
  require(*decoded == message, "a message changed on the wire");
  return *decoded;
}

void SoleWorld::connect(int id, const client::Connect& order) {
  const client::LinkId link = order.link;
  Node& node = nodes_[index(id)];
  if (node.connection >= 0) close_agent_end(node.connection);
  node.link = link;
  const TimePoint give_up = now() + client::kAttemptMax;
  timeline_.after(delay(), [this, id, process = node.process, link, give_up] {
    establish(id, process, link, give_up);
  });
}

void SoleWorld::close_link(int id, client::LinkId link) {
  Node& node = nodes_[index(id)];
  if (link != node.link) return;  // the peer closed it, which is still to be told
  if (node.connection >= 0) return close_agent_end(node.connection);
  node.link = 0;
}

void SoleWorld::send(int id, const client::SendMessage& order) {
  const Node& node = nodes_[index(id)];
  if (!is_heartbeat(order.message)) {
    say([&] { return node.options.host + " -> " + words(order.message); });
  }
  const bool open = order.link == node.link && node.connection >= 0;
  if (open) push(node.connection, Way::kUp, through_codec(order.message));
}

void SoleWorld::establish(int id, int process, client::LinkId link, TimePoint give_up) {
  Node& node = nodes_[index(id)];
  if (!lives(id, process) || node.link != link) return;  // its socket is closed
  if (cut_off(id)) {
    // The packets vanish without an answer.
    if (now() >= give_up) return to_agent(id, process, client::LinkDown{link, "timed out"});
    timeline_.after(kKnockAgain,
                    [this, id, process, link, give_up] { establish(id, process, link, give_up); });
    return;
  }
  if (!run_) return to_agent(id, process, client::LinkDown{link, "connection refused"});
  auto connection = std::make_unique<Connection>();
  connection->node = id;
  connection->process = process;
  connection->agent_link = link;
  connection->coordinator = coordinator_;
  connection->link = round::LinkId(++links_);
  const int number = static_cast<int>(connections_.size());
  by_link_[connection->link.value()] = number;
  connections_.push_back(std::move(connection));
  node.connection = number;
  to_agent(id, process, client::LinkUp{link});
}

void SoleWorld::push(int number, Way way, Item item) {
  Connection& connection = *connections_[index(number)];
  Pipe& pipe = way == Way::kUp ? connection.up : connection.down;
  if (pipe.closed) return;
  pipe.last_arrival = std::max(pipe.last_arrival, now() + delay());
  pipe.items.emplace_back(pipe.last_arrival, std::move(item));
  schedule_pump(number, way, pipe.items.front().first);
}

void SoleWorld::schedule_pump(int number, Way way, TimePoint when) {
  Connection& connection = *connections_[index(number)];
  Pipe& pipe = way == Way::kUp ? connection.up : connection.down;
  if (std::exchange(pipe.scheduled, true)) return;
  timeline_.at(when, [this, number, way] { pump(number, way); });
}

void SoleWorld::pump(int number, Way way) {
  Connection& connection = *connections_[index(number)];
  Pipe& pipe = way == Way::kUp ? connection.up : connection.down;
  pipe.scheduled = false;
  if (pipe.closed) return pipe.items.clear();
  if (cut_off(connection.node)) return;  // until the partition heals
  const TimePoint paused =
      way == Way::kUp ? coordinator_paused_until() : nodes_[index(connection.node)].paused_until;
  if (now() < paused) return schedule_pump(number, way, paused);
  if (pipe.items.empty()) return;
  if (pipe.items.front().first > now()) return schedule_pump(number, way, pipe.items.front().first);
  Item item = std::move(pipe.items.front().second);
  pipe.items.pop_front();
  if (!pipe.items.empty()) schedule_pump(number, way, pipe.items.front().first);
  deliver(number, way, std::move(item));
}

// Whatever lies in the coordinator's sockets, in the order of the connections.
void SoleWorld::drain_arrived() {
  std::vector<int> open;
  for (const auto& [link, number] : by_link_) open.push_back(number);
  for (const int number : open) {
    Connection& connection = *connections_[index(number)];
    Pipe& pipe = connection.up;
    if (cut_off(connection.node)) continue;
    while (!pipe.closed && !pipe.items.empty() && pipe.items.front().first < now()) {
      Item item = std::move(pipe.items.front().second);
      pipe.items.pop_front();
      deliver(number, Way::kUp, std::move(item));
    }
  }
}

void SoleWorld::deliver(int number, Way way, Item item) {
  if (way == Way::kUp) return deliver_up(number, std::move(item));
  Connection& connection = *connections_[index(number)];
  if (!connection.agent_open) return;
  if (auto* message = std::get_if<Message>(&item)) {
    return to_agent(connection.node, connection.process,
                    client::Incoming{connection.agent_link, std::move(*message)});
  }
  detach(number);
  connection.up.closed = true;
  to_agent(connection.node, connection.process,
           client::LinkDown{connection.agent_link, "connection closed"});
}

void SoleWorld::deliver_up(int number, Item item) {
  Connection& connection = *connections_[index(number)];
  if (!connection.coordinator_open || connection.coordinator != coordinator_) return;
  if (auto* message = std::get_if<Message>(&item)) {
    const auto* hello = std::get_if<Hello>(message);
    require(hello != nullptr || connection.greeted, "the first message is not hello");
    connection.greeted = true;
    const auto* report = std::get_if<Report>(message);
    const bool succeeded = report != nullptr && report->state == NodeState::kSucceeded;
    if (succeeded) checker_.on_success_read(connection.process);
    const std::string own = "10.0.0.254";
    const std::string from =
        is_root(connection.node) ? "127.0.0.1" : "10.0.0." + std::to_string(connection.node + 1);
    const std::string to = is_root(connection.node) ? "127.0.0.1" : own;
    return to_coordinator(connection.coordinator,
                          round::Received{connection.link, {from, to}, std::move(*message)});
  }
  connection.coordinator_open = false;
  connection.down.closed = true;
  to_coordinator(connection.coordinator,
                 round::LinksLost{{{connection.link, "connection closed"}}});
}

/// The agent has no use for this connection any more.
void SoleWorld::detach(int number) {
  Connection& connection = *connections_[index(number)];
  connection.agent_open = false;
  Node& node = nodes_[index(connection.node)];
  if (node.connection != number) return;
  node.connection = -1;
  node.link = 0;
}

void SoleWorld::close_agent_end(int number) {
  Connection& connection = *connections_[index(number)];
  if (!connection.agent_open) return;
  detach(number);
  connection.down.closed = true;
  push(number, Way::kUp, Fin{});
}

void SoleWorld::close_coordinator_end(int number) {
  Connection& connection = *connections_[index(number)];
  by_link_.erase(connection.link.value());
  const bool replaced = speaker_ == connection.process;
  if (!replaced) checker_.on_process_lost(connection.process);
  if (!connection.coordinator_open) return;
  connection.coordinator_open = false;
  connection.up.closed = true;
  push(number, Way::kDown, Fin{});
}

// What is in flight is lost; the two ends notice at different times.
void SoleWorld::drop_link(int id) {
  const Node& node = nodes_[index(id)];
  const int number = node.connection;
  if (number < 0) return;
  say(node.options.host + " loses its connection");
  checker_.excuse(node.process, now());
  Connection& connection = *connections_[index(number)];
  connection.up.closed = true;
  connection.down.closed = true;
  timeline_.after(delay() * 3, [this, number] {
    Connection& one = *connections_[index(number)];
    if (one.coordinator != coordinator_ || !one.coordinator_open) return;
    one.coordinator_open = false;
    to_coordinator(one.coordinator, round::LinksLost{{{one.link, "connection reset"}}});
  });
  timeline_.after(delay() * 3, [this, number] {
    Connection& one = *connections_[index(number)];
    if (!one.agent_open) return;
    detach(number);
    to_agent(one.node, one.process, client::LinkDown{one.agent_link, "connection reset"});
  });
}

void SoleWorld::impersonate(int id) {
  const Node& node = nodes_[index(id)];
  if (!run_ || node.connection < 0) return;
  say("a stranger calls itself " + node.options.host);
  auto connection = std::make_unique<Connection>();
  connection->node = id;
  connection->process = node.process;
  connection->coordinator = coordinator_;
  connection->link = round::LinkId(++links_);
  connection->agent_open = false;
  const int number = static_cast<int>(connections_.size());
  by_link_[connection->link.value()] = number;
  connections_.push_back(std::move(connection));
  Hello hello = membership_options(id).hello;
  hello.store_port = 9;
  hello.age = Milliseconds(std::chrono::hours(1));
  if (round_of(id) > Round(0)) {
    const StartRound& told = checker_.told(node.process);
    hello.claim =
        Claim{told.stamp, told.group_rank, told.group_size, told.restarts, NodeState::kRunning};
  }
  push(number, Way::kUp, std::move(hello));
}

void SoleWorld::set_partitioned(int id, bool partitioned) {
  Node& node = nodes_[index(id)];
  if (node.partitioned == partitioned) return;
  say(node.options.host + (partitioned ? " is cut off" : " is reachable again"));
  node.partitioned = partitioned;
  node.answers_from = std::max(node.answers_from, now() + 2 * options_.delay_max);
  for (int other = 0; other < node_count(); ++other) {
    if (other != id && !is_root(id)) continue;
    checker_.excuse(nodes_[index(other)].process, cut_off(other) ? kForEver : now());
  }
  if (partitioned) return;
  for (int other = 0; other < node_count(); ++other) {
    if (other == id || is_root(id)) resume_wires(other);
  }
}

// What was sent meanwhile is sent again.
void SoleWorld::resume_wires(int id) {
  for (int number = 0; number < static_cast<int>(connections_.size()); ++number) {
    Connection& connection = *connections_[index(number)];
    if (connection.node != id) continue;
    if (!connection.up.items.empty()) schedule_pump(number, Way::kUp, now() + delay());
    if (!connection.down.items.empty()) schedule_pump(number, Way::kDown, now() + delay());
  }
}

}  // namespace ddprun::sim
