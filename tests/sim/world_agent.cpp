// The agents of the simulated world: the real Node, and a thread that can stand still.
#include <algorithm>
#include <utility>

#include "rendezvous/protocol/names.hpp"
#include "tests/sim/round_shell.hpp"
#include "tests/sim/words.hpp"
#include "tests/sim/world.hpp"

namespace ddprun::sim {

using namespace protocol;

void World::start_agent(int id) {
  Node& node = nodes_[index(id)];
  if (node.agent) return;
  Node before = std::exchange(node, Node{});
  node.options = std::move(before.options);
  node.clock = before.clock;
  node.partitioned = before.partitioned;
  node.ports_opened = before.ports_opened;
  node.process = processes_++;
  make_agent(id);
  ++agents_alive_;
  static_cast<void>(record_now(id));
  say(node.options.host + " starts");
  node.states = (*node.agent)->membership().state_names();
  feed(id, node::Begin{});
}

client::MembershipOptions World::membership_options(int id) const {
  const Node& node = nodes_[index(id)];
  client::MembershipOptions options;
  options.hello.run_id = RunId(node.options.run_id);
  options.hello.agent = agent_of(node);
  options.hello.host = node.options.host;
  options.hello.local_world_size = node.options.workers;
  options.hello.role = node.options.role;
  options.hello.node_rank = node.options.node_rank;
  options.hello.fingerprint = options.hello.command = node.options.fingerprint;
  options.hello.terms = node.options.terms.value_or(options_.terms);
  options.coordinator = "coordinator:29400";
  options.failure_grace = kFailureGrace;
  options.keeps_survivors = options_.survivor_percent.has_value();
  options.coordinator_timeout = options_.coordinator_timeout;
  return options;
}

Round World::round_of(int node) const {
  const auto& agent = nodes_[index(node)].agent;
  return agent ? (*agent)->membership().round() : Round(0);
}

// Held events keep their order, also if the process is paused again before it has seen them.
void World::hold(int id, std::function<void()> what) {
  std::deque<std::function<void()>>& held = nodes_[index(id)].held;
  held.push_back(std::move(what));
  if (held.size() == 1) release_held(id);
}

void World::release_held(int id) {
  Node& node = nodes_[index(id)];
  if (paused(id)) return timeline_.at(node.paused_until, [this, id] { release_held(id); });
  for (const auto& what : std::exchange(node.held, {})) what();
}

void World::on_step(int id, const node::Stepped& step) {
  ++steps_;
  Node& node = nodes_[index(id)];
  const auto before = std::exchange(node.states, step.states);
  for (std::size_t part = 0; part < before.size(); ++part) {
    record_transition(before[part], node.states[part]);
  }
}

void World::arm_agent(int id, TimePoint deadline) {
  Node& node = nodes_[index(id)];
  node.timer_pending = true;
  agent_timer(id, node.process, ++node.timer, node.clock.global(deadline));
}

// A process that is paused sees its timer when it resumes, unless it replaced it first.
void World::agent_timer(int id, int process, int timer, TimePoint when) {
  timeline_.at(when, [this, id, process, timer] {
    Node& node = nodes_[index(id)];
    if (node.timer != timer || !lives(id, process) || node.ended) return;
    if (paused(id)) return agent_timer(id, process, timer, node.paused_until);
    node.timer_pending = false;
    on_thread(id, process, [this, id] { feed(id, client::Tick{}); });
  });
}

// What comes to its thread over a link.
void World::note_heard(int id, const Message& message) {
  if (!is_heartbeat(message)) say([&] { return host_of(id) + " <- " + words(message); });
  record(id, message);
}

void World::leave(int id, int exit_code, const std::string& reason) {
  Node& node = nodes_[index(id)];
  if (!node.agent || node.ended) return;
  expect_leave(id, reason);
  on_thread(id, node.process, [this, id, exit_code, reason] {
    feed(id, node::Failed{exit_code, reason});
  });
}

void World::expect_leave(int id, const std::string& reason) {
  Node& node = nodes_[index(id)];
  say(node.options.host + " is told to go: " + reason);
  node.leaving = true;
  checker_.on_leaving(node.process, coordinated(id));
}

void World::signal_agent(int id, int signal) {
  Node& node = nodes_[index(id)];
  if (!node.agent) return;
  say(node.options.host + " gets signal " + std::to_string(signal));
  // It is taken later where the thread stands still; the coordinator's may be that one.
  if (paused(id)) checker_.on_leaving(node.process, coordinated(id));
  on_thread(id, node.process, [this, id, signal] { take_signal(id, signal); });
}

void World::take_signal(int id, int signal) {
  Node& node = nodes_[index(id)];
  checker_.on_signalled(node.process, coordinated(id), now());
  node.leaving = true;
  const bool ended = node.ended;
  const bool pending = node.group && node.group->shell->round().failure_is_unreported();
  feed(id, node::StopAsked{{signal}, pending});
  if (ended && (*node.agent)->is_forced_stop()) exit_process(id);
}

void World::on_end(int id, const client::End& end) {
  Node& node = nodes_[index(id)];
  require(!node.group, "an agent ended over live workers");
  say(node.options.host + " ends with " + std::to_string(end.exit_code) + ": " + end.text);
  checker_.on_agent_ended(node.process, end);
  explain::NodeRecord& own = record_now(id);
  own.outcome = end.exit_code == 0 ? "succeeded" : "failed";
  own.exit_code = end.exit_code;
  own.end_text = end.text;
  node.end = end;
  require(!node.serves, "an agent ended with an open store");
  after_end(id);
}

void World::forget_agent(int id) {
  Node& node = nodes_[index(id)];
  checker_.on_agent_gone(node.process);
  const std::optional<Group> group = std::exchange(node.group, std::nullopt);
  node.agent.reset();
  node.serves.reset();
  node.listener_open = false;
  std::erase_if(released_, [id](const auto& one) { return one.second == id; });
  --agents_alive_;
  if (!group) return;
  tell_if_idle(group->round.stamp);
  disturb_peers(group->round.stamp, id);
}

void World::kill_agent(int id, const std::string& how) {
  Node& node = nodes_[index(id)];
  if (!node.agent) return;
  say(node.options.host + " " + how);
  checker_.excuse(node.process, now());
  lose_process(id, Gone::kKilled);
  forget_agent(id);
}

void World::power_off(int id) {
  Node& node = nodes_[index(id)];
  if (!node.agent) return;
  say(node.options.host + " loses power");
  checker_.excuse(node.process, now());
  lose_process(id, Gone::kPower);
  forget_agent(id);
}

void World::record_transition(std::string_view from, std::string_view to) {
  if (from != to) transitions_.insert(std::string(from) + " --> " + std::string(to));
}

}  // namespace ddprun::sim
