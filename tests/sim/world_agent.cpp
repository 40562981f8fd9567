// The shell of a simulated agent: what agent/node.hpp is for a real one. One event at a time, in
// the order in which they came.
#include <algorithm>
#include <utility>

#include "agent/core/kill_order.hpp"
#include "rendezvous/protocol/names.hpp"
#include "tests/sim/words.hpp"
#include "tests/sim/world.hpp"

namespace ddprun::sim {

using namespace protocol;

void World::start_agent(int id) {
  Node& node = nodes_[index(id)];
  if (node.membership) return;
  const Node before = std::exchange(node, Node{});
  node.options = before.options;
  node.clock = before.clock;
  node.partitioned = before.partitioned;
  node.ports = before.ports;
  node.process = processes_++;
  if (is_root(id)) start_coordinator();
  if (cut_off(id)) checker_.excuse(node.process, TimePoint(std::chrono::hours(1'000'000)));
  client::MembershipOptions options;
  options.hello.run_id = RunId(node.options.run_id);
  options.hello.agent = AgentId(node.options.host + "#" + std::to_string(node.process));
  options.hello.host = node.options.host;
  options.hello.local_world_size = node.options.workers;
  options.hello.role = node.options.role;
  options.hello.node_rank = node.options.node_rank;
  options.hello.fingerprint = options.hello.command = node.options.fingerprint;
  options.hello.runs_coordinator = is_root(id);
  options.hello.terms = node.options.terms.value_or(options_.terms);
  options.coordinator = "coordinator:29400";
  options.coordinator_timeout = options_.coordinator_timeout;
  const TimePoint local = node.clock.local(now());
  node.membership = std::make_unique<client::Membership>(std::move(options), local);
  ++agents_alive_;
  say(node.options.host + " starts");
  node.feeding = true;
  for (const client::Action& action : node.membership->begin(local)) carry_out(id, action);
  feed_queued(id);
}

Round World::round_of(int node) const {
  const auto& membership = nodes_[index(node)].membership;
  return membership ? membership->round() : Round(0);
}

void World::to_agent(int id, int process, client::Event event) {
  Node& node = nodes_[index(id)];
  if (!lives(id, process)) return;
  if (paused(id)) {
    timeline_.at(node.paused_until,
                 [this, id, process, event = std::move(event)] { to_agent(id, process, event); });
    return;
  }
  if (const auto* incoming = std::get_if<client::Incoming>(&event)) {
    if (incoming->link != node.link) return;  // closed meanwhile: such a link is not read any more
    const bool beat = std::holds_alternative<Beat>(incoming->message);
    if (!beat) say(node.options.host + " <- " + words(incoming->message));
    if (const auto* start = std::get_if<StartRound>(&incoming->message)) {
      checker_.on_told(process, *start);
    }
    if (const auto* done = std::get_if<Done>(&incoming->message)) checker_.on_verdict_told(*done);
  }
  if (const auto* down = std::get_if<client::LinkDown>(&event)) {
    if (node.link == down->link) node.link = 0;
  }
  feed(id, std::move(event));
}

void World::feed(int id, client::Event event) {
  Node& node = nodes_[index(id)];
  node.events.push_back(std::move(event));
  if (!std::exchange(node.feeding, true)) feed_queued(id);
}

void World::feed_queued(int id) {
  Node& node = nodes_[index(id)];
  while (!node.events.empty()) {
    const client::Event next = std::move(node.events.front());
    node.events.pop_front();
    ++steps_;
    const std::string_view before = name_of(node.membership->state());
    const std::string_view link_before = node.membership->link_name();
    const client::Actions actions = node.membership->step(next, node.clock.local(now()));
    record_transition(before, name_of(node.membership->state()));
    record_transition(link_before, node.membership->link_name());
    for (const client::Action& action : actions) carry_out(id, action);
  }
  node.feeding = false;
  if (node.end) return on_end(id, *node.end);
  const bool ending = node.leaving || (node.group && node.group->ending());
  require(node.timer_pending || ending, "an agent waits without a deadline");
}

void World::carry_out(int id, const client::Action& action) {
  Node& node = nodes_[index(id)];
  require(!node.end, "an agent does something after its end");
  if (const auto* connect_to = std::get_if<client::Connect>(&action)) {
    connect(id, connect_to->link);
  } else if (const auto* close = std::get_if<client::CloseLink>(&action)) {
    if (close->link != node.link) return;  // the peer closed it, which is still to be told
    if (node.connection >= 0) return close_agent_end(node.connection);
    node.link = 0;
  } else if (const auto* message = std::get_if<client::SendMessage>(&action)) {
    if (!std::holds_alternative<Beat>(message->message)) {
      say(node.options.host + " -> " + words(message->message));
    }
    const bool open = message->link == node.link && node.connection >= 0;
    if (open) push(node.connection, Way::kUp, through_codec(message->message));
  } else if (std::holds_alternative<client::OpenStore>(action)) {
    open_store(id);
  } else if (std::holds_alternative<client::ServeStore>(action)) {
    serve_store(id);
  } else if (std::holds_alternative<client::ReleaseStore>(action)) {
    release_store(id);
  } else if (const auto* ended = std::get_if<client::CloseStore>(&action)) {
    close_store(id, ended->round);
  } else if (const auto* start = std::get_if<client::StartGroup>(&action)) {
    start_group(id, start->round);
  } else if (const auto* stop = std::get_if<client::StopGroup>(&action)) {
    require(!stop->reason.empty(), "workers are stopped without a reason");
    stop_group(id, *stop);
  } else if (const auto* timer = std::get_if<client::ArmTimer>(&action)) {
    arm_agent(id, timer->deadline);
  } else if (const auto* note = std::get_if<client::Note>(&action)) {
    require(!note->text.empty(), "an empty note");
  } else if (const auto* end = std::get_if<client::End>(&action)) {
    node.end = *end;
  }
}

void World::open_store(int id) {
  Node& node = nodes_[index(id)];
  require(!node.listener_open, "a second listener for the next round");
  node.listener_open = true;
  const auto port = static_cast<std::uint16_t>(30000 + node.ports++ % 10000);
  feed(id, client::StoreOpened{port});
}

void World::serve_store(int id) {
  Node& node = nodes_[index(id)];
  require(std::exchange(node.listener_open, false), "a store to serve without a listener");
  require(!node.serves, "stores of two rounds on one node");
  node.serves = checker_.told(node.process).stamp;
}

void World::release_store(int id) {
  Node& node = nodes_[index(id)];
  require(node.serves.has_value(), "a store is released that nobody serves");
  const RoundStamp stamp = *std::exchange(node.serves, std::nullopt);
  released_[key_of(stamp)] = id;
  tell_if_idle(stamp);
}

/// A node with a living worker of the round and such wires to `server`; -1: none.
int World::client_of(const RoundStamp& stamp, int server, Wires wires) const {
  for (int other = 0; other < node_count(); ++other) {
    const auto& group = nodes_[index(other)].group;
    if (!group || !(group->round.stamp == stamp)) continue;
    if (wires == Wires::kWhole && (cut_off(other) || cut_off(server))) continue;
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
    to_agent(id, process, client::StoreIdle{stamp.number});
  });
}

void World::close_store(int id, Round round) {
  const auto found = std::find_if(released_.begin(), released_.end(), [&](const auto& one) {
    return one.second == id && one.first.first == round.value();
  });
  require(found != released_.end(), "a store is closed that was not released");
  const RoundStamp stamp{Round(found->first.first), found->first.second};
  released_.erase(found);
  if (nodes_[index(id)].hurried) return;  // its user waits for nothing
  const int client = client_of(stamp, id, Wires::kWhole);
  checker_.on_store_closed(stamp, client < 0 ? "" : nodes_[index(client)].options.host, now());
}

void World::arm_agent(int id, TimePoint deadline) {
  Node& node = nodes_[index(id)];
  node.timer_pending = true;
  agent_timer(id, node.process, ++node.timer, node.clock.global(deadline));
}

// A process that is paused sees its timer when it goes on, unless it replaced it first.
void World::agent_timer(int id, int process, int timer, TimePoint when) {
  timeline_.at(when, [this, id, process, timer] {
    Node& node = nodes_[index(id)];
    if (node.timer != timer || !lives(id, process) || node.end) return;
    if (paused(id)) return agent_timer(id, process, timer, node.paused_until);
    node.timer_pending = false;
    to_agent(id, process, client::Tick{});
  });
}

void World::leave(int id, int exit_code, const std::string& reason) {
  Node& node = nodes_[index(id)];
  if (!node.membership || node.end) return;
  say(node.options.host + " is told to go: " + reason);
  node.leaving = true;
  checker_.on_leaving(node.process);
  to_agent(id, node.process, client::LeaveAsked{exit_code, reason});
}

void World::signal_agent(int id, int signal) {
  Node& node = nodes_[index(id)];
  if (!node.membership) return;
  say(node.options.host + " gets signal " + std::to_string(signal));
  take_signal(id, node.process, signal);
}

void World::take_signal(int id, int process, int signal) {
  Node& node = nodes_[index(id)];
  if (!lives(id, process)) return;
  if (paused(id)) {
    timeline_.at(node.paused_until,
                 [this, id, process, signal] { take_signal(id, process, signal); });
    return;
  }
  const bool answers = std::string(node.membership->link_name()) == "Answered" && run_ &&
                       now() >= coordinator_paused_until();
  checker_.on_signalled(process, answers ? Checker::Coordinated::kYes : Checker::Coordinated::kNo,
                        now());
  const bool first = node.stop_signal == 0;
  if (first) node.stop_signal = signal;
  if (node.group) feed_group(id, node.group->generation, StopRequested{signal});
  if (!first) {
    if (!is_forced_stop(signal)) return;
    node.hurried = true;
    if (node.end) return exit_process(id);
  }
  if (node.end) return;
  if (node.group && node.group->core->state() == ddprun::GroupState::kSucceeded) return;
  leave_for_signal(id);
}

void World::leave_for_signal(int id) {
  Node& node = nodes_[index(id)];
  node.leaving = true;
  feed(id, client::LeaveAsked{128 + node.stop_signal,
                              "signal " + std::to_string(node.stop_signal) + " received"});
}

void World::on_end(int id, const client::End& end) {
  Node& node = nodes_[index(id)];
  require(!node.group, "an agent ended over live workers");
  say(node.options.host + " ends with " + std::to_string(end.exit_code) + ": " + end.text);
  checker_.on_agent_ended(node.process, end);
  node.exit_code = end.exit_code;
  if (node.connection >= 0) close_agent_end(node.connection);
  require(!node.serves, "an agent ended with an open store");
  if (is_root(id) && run_ && node.stop_signal != 0 && !end.done) {
    tell_coordinator(round::Shutdown{end.exit_code, node.options.host + " leaves"});
  }
  const TimePoint written = std::max(now(), node.output_stalled_until);
  if (written == now()) return end_process(id, node.process);
  timeline_.at(written, [this, id, process = node.process] { end_process(id, process); });
}

// The root's process stays as the coordinator of the others until they have gone.
void World::end_process(int id, int process) {
  Node& node = nodes_[index(id)];
  if (!lives(id, process)) return;
  if (paused(id)) {
    timeline_.at(node.paused_until, [this, id, process] { end_process(id, process); });
    return;
  }
  const bool hosts = is_root(id) && run_ && run_terms_ && !finished_ && !node.hurried;
  if (!hosts) exit_process(id);
}

void World::exit_process(int id) {
  if (is_root(id)) crash_coordinator();  // or it is over, and closes its links
  forget_agent(id);
}

void World::forget_agent(int id) {
  Node& node = nodes_[index(id)];
  checker_.on_agent_gone(node.process);
  const std::optional<Group> group = std::exchange(node.group, std::nullopt);
  node.membership.reset();
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
  if (!node.membership) return;
  say(node.options.host + " " + how);
  checker_.excuse(node.process, now());
  if (node.connection >= 0) close_agent_end(node.connection);
  if (is_root(id)) crash_coordinator();
  forget_agent(id);
}

void World::power_off(int id) {
  Node& node = nodes_[index(id)];
  if (!node.membership) return;
  say(node.options.host + " loses power");
  checker_.excuse(node.process, now());
  if (node.connection >= 0) {
    Connection& connection = *connections_[index(node.connection)];
    connection.down.closed = true;
    detach(node.connection);
  }
  if (is_root(id)) crash_coordinator();
  forget_agent(id);
}

void World::pause_agent(int id, Duration time) {
  Node& node = nodes_[index(id)];
  node.paused_until = std::max(node.paused_until, now() + time);
  // The root's coordinator stands still with it, and so blames nobody.
  if (is_root(id)) return checker_.on_coordinator_paused(now(), node.paused_until);
  const auto borne = options_.terms.silence_max() - 2 * options_.terms.keep_alive_interval;
  if (Duration(borne) - 4 * options_.delay_max < time)
    checker_.excuse(node.process, node.paused_until);
}

}  // namespace ddprun::sim
