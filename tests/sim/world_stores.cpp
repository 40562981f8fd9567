// The stores of rounds in the simulated world. A living worker of a round is a client of its store.
#include <algorithm>
#include <utility>

#include "tests/sim/world.hpp"

namespace ddprun::sim {

using namespace protocol;

std::uint16_t World::open_store(int id) {
  Node& node = nodes_[index(id)];
  require(!node.listener_open, "a second listener for the next round");
  node.listener_open = true;
  return static_cast<std::uint16_t>(30000 + node.ports_opened++ % 10000);
}

void World::serve_store(int id) {
  Node& node = nodes_[index(id)];
  require(std::exchange(node.listener_open, false), "a store to serve without a listener");
  require(!node.serves, "stores of two rounds on one node");
  node.serves = checker_.told(node.process).stamp;
}

void World::release_store(int id) {
  Node& node = nodes_[index(id)];
  require(node.serves.has_value(), "a store is released that is not served");
  const RoundStamp stamp = *std::exchange(node.serves, std::nullopt);
  released_[key_of(stamp)] = id;
  checker_.on_store_released(node.process, stamp, now());
  tell_if_idle(stamp);
}

/// A node with a living worker of the round and such wires to `server`; -1: none.
int World::client_of(const RoundStamp& stamp, int server, Wires wires) const {
  for (int other = 0; other < node_count(); ++other) {
    const auto& group = nodes_[index(other)].group;
    if (!group || !(group->round.stamp == stamp)) continue;
    if (wires == Wires::kWhole && !is_reached(other, server)) continue;
    const auto& workers = group->workers;
    const auto alive = [](const Worker& worker) { return worker.alive; };
    if (std::any_of(workers.begin(), workers.end(), alive)) return other;
  }
  return -1;
}

void World::tell_if_idle(const RoundStamp& stamp) {
  const auto found = released_.find(key_of(stamp));
  if (found == released_.end()) return;
  const int id = found->second;
  // A cut wire ends no connection: its client counts until it is reset or ends.
  if (client_of(stamp, id, Wires::kAny) >= 0) return;
  timeline_.after(Duration(0), [this, id, process = nodes_[index(id)].process, stamp] {
    on_thread(id, process, [this, id, stamp] {
      // As the store's server does: a client may have come since, while this thread stood still.
      if (client_of(stamp, id, Wires::kAny) >= 0) return;
      feed(id, client::StoreIdle{stamp.number});
    });
  });
}

void World::close_store(int id, Round round) {
  const auto found = std::find_if(released_.begin(), released_.end(), [&](const auto& one) {
    return one.second == id && one.first.first == round.value();
  });
  require(found != released_.end(), "a store is closed that was not released");
  const RoundStamp stamp{Round(found->first.first), found->first.second};
  released_.erase(found);
  if ((*nodes_[index(id)].agent)->is_forced_stop()) return;  // its user waits for nothing
  const int client = client_of(stamp, id, Wires::kWhole);
  if (client < 0) return;
  const Node& node = nodes_[index(client)];
  checker_.on_store_closed(stamp, {node.options.host, node.group->told_to_end}, now());
}

}  // namespace ddprun::sim
