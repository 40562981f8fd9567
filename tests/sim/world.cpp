#include "tests/sim/world.hpp"

#include <cstdio>
#include <utility>

namespace ddprun::sim {

World::World(WorldOptions options)
    : options_(std::move(options)),
      random_(options_.seed),
      checker_(options_.terms, options_.stop_grace) {}

int World::add_node(NodeOptions options) {
  Node node;
  node.options = std::move(options);
  const int drift = options_.drift_percent;
  node.clock.rate = 1.0 + 0.01 * random_.between(-drift, drift);
  node.clock.offset = seconds(random_.between(0, 100'000));
  nodes_.push_back(std::move(node));
  return node_count() - 1;
}

void World::run_for(Duration time) {
  const TimePoint end = now() + time;
  while (timeline_.run_one(end)) {
  }
}

bool World::run_until(const std::function<bool()>& done, Duration limit) {
  const TimePoint end = now() + limit;
  while (!done()) {
    if (!timeline_.run_one(end)) return done();
  }
  return true;
}

void World::trace_with_time(const std::function<void(const std::string&)>& line) {
  trace([this, line, zero = now()](const std::string& text) {
    const std::chrono::duration<double, std::milli> time = now() - zero;
    std::array<char, 32> at{};
    std::snprintf(at.data(), at.size(), "%.3f ms  ", time.count());
    line(at.data() + text);
  });
}

void World::stall_output(int id, Duration time) {
  Node& node = nodes_[index(id)];
  say(node.options.host + " cannot write what its workers say");
  node.output_stalled_until = std::max(node.output_stalled_until, now() + time);
}

void World::stall_start(int id, Duration time) {
  Node& node = nodes_[index(id)];
  say(node.options.host + "'s log folder does not answer");
  node.start_stalled_until = std::max(node.start_stalled_until, now() + time);
}

}  // namespace ddprun::sim
