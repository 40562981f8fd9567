// Connections of the simulated world.
#include <algorithm>
#include <utility>

#include "rendezvous/protocol/codec.hpp"
#include "tests/sim/world.hpp"

namespace ddprun::sim {

using namespace protocol;

Message World::through_codec(const Message& message) const {
  if (options_.bytes == Bytes::kPlain) return message;
  const auto decoded = decode(encode(message));
  require(decoded.has_value(), "a message of ours cannot be read back");
  require(*decoded == message, "a message changed on the wire");
  return *decoded;
}

void World::connect(int id, client::LinkId link) {
  const int process = nodes_[index(id)].process;
  timeline_.after(delay(), [this, id, process, link] { establish(id, process, link); });
}

void World::establish(int id, int process, client::LinkId link) {
  Node& node = nodes_[index(id)];
  if (!node.membership || node.process != process) return;
  if (node.partitioned) return;  // the packets vanish, nobody answers
  if (!run_) {
    return to_agent(id, process, client::LinkDown{link, "connection refused"});
  }
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

void World::push(int number, Way way, Item item) {
  Connection& connection = *connections_[index(number)];
  Pipe& pipe = way == Way::kUp ? connection.up : connection.down;
  if (pipe.closed) return;
  pipe.last_arrival = std::max(pipe.last_arrival, now() + delay());
  pipe.items.emplace_back(pipe.last_arrival, std::move(item));
  if (pipe.scheduled) return;
  pipe.scheduled = true;
  timeline_.at(pipe.items.front().first, [this, number, way] { pump(number, way); });
}

void World::pump(int number, Way way) {
  Connection& connection = *connections_[index(number)];
  Pipe& pipe = way == Way::kUp ? connection.up : connection.down;
  pipe.scheduled = false;
  if (pipe.closed) {
    pipe.items.clear();
    return;
  }
  if (nodes_[index(connection.node)].partitioned) return;  // until the partition heals
  const TimePoint paused =
      way == Way::kUp ? coordinator_paused_until_ : nodes_[index(connection.node)].paused_until;
  if (now() < paused) {
    pipe.scheduled = true;
    timeline_.at(paused, [this, number, way] { pump(number, way); });
    return;
  }
  if (pipe.items.empty()) return;
  const Item item = std::move(pipe.items.front().second);
  pipe.items.pop_front();
  if (!pipe.items.empty()) {
    pipe.scheduled = true;
    timeline_.at(pipe.items.front().first, [this, number, way] { pump(number, way); });
  }
  deliver(number, way, item);
}

void World::deliver(int number, Way way, const Item& item) {
  Connection& connection = *connections_[index(number)];
  const auto* message = std::get_if<Message>(&item);
  if (way == Way::kUp) {
    if (!connection.coordinator_open || connection.coordinator != coordinator_) return;
    if (message != nullptr) {
      const std::string address = "10.0.0." + std::to_string(connection.node + 1);
      return to_coordinator(connection.coordinator,
                            round::Received{connection.link, {address, "10.0.0.254"}, *message});
    }
    connection.coordinator_open = false;
    connection.down.closed = true;
    return to_coordinator(connection.coordinator,
                          round::LinkLost{connection.link, "connection closed"});
  }
  if (!connection.agent_open) return;
  if (message != nullptr) {
    return to_agent(connection.node, connection.process,
                    client::Incoming{connection.agent_link, *message});
  }
  connection.agent_open = false;
  connection.up.closed = true;
  Node& node = nodes_[index(connection.node)];
  if (node.connection == number) node.connection = -1;
  to_agent(connection.node, connection.process,
           client::LinkDown{connection.agent_link, "connection closed"});
}

void World::close_agent_end(int number) {
  Connection& connection = *connections_[index(number)];
  if (!connection.agent_open) return;
  connection.agent_open = false;
  connection.down.closed = true;
  push(number, Way::kUp, Fin{});
  Node& node = nodes_[index(connection.node)];
  if (node.connection == number) node.connection = -1;
}

void World::close_coordinator_end(int number) {
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
void World::drop_link(int id) {
  const int number = nodes_[index(id)].connection;
  if (number < 0) return;
  say(nodes_[index(id)].options.host + " loses its connection");
  Connection& connection = *connections_[index(number)];
  connection.up.closed = true;
  connection.down.closed = true;
  timeline_.after(delay() * 3, [this, number] {
    Connection& one = *connections_[index(number)];
    if (one.coordinator != coordinator_ || !one.coordinator_open) return;
    one.coordinator_open = false;
    to_coordinator(one.coordinator, round::LinkLost{one.link, "connection reset"});
  });
  timeline_.after(delay() * 3, [this, number] {
    Connection& one = *connections_[index(number)];
    if (!one.agent_open) return;
    one.agent_open = false;
    Node& node = nodes_[index(one.node)];
    if (node.connection == number) node.connection = -1;
    to_agent(one.node, one.process, client::LinkDown{one.agent_link, "connection reset"});
  });
}

void World::set_partitioned(int id, bool partitioned) {
  Node& node = nodes_[index(id)];
  if (node.partitioned == partitioned) return;
  say(node.options.host + (partitioned ? " is cut off" : " is reachable again"));
  node.partitioned = partitioned;
  if (partitioned) return;
  for (int number = 0; number < static_cast<int>(connections_.size()); ++number) {
    Connection& connection = *connections_[index(number)];
    if (connection.node != id) continue;
    for (const Way way : {Way::kUp, Way::kDown}) {
      Pipe& pipe = way == Way::kUp ? connection.up : connection.down;
      if (pipe.scheduled || pipe.items.empty()) continue;
      pipe.scheduled = true;
      timeline_.after(delay(), [this, number, way] { pump(number, way); });
    }
  }
}

}  // namespace ddprun::sim
