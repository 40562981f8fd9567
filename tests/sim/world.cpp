#include "tests/sim/world.hpp"

#include <utility>

#include "tests/sim/words.hpp"

namespace ddprun::sim {

using namespace protocol;

World::World(WorldOptions options)
    : options_(std::move(options)), random_(options_.seed), checker_(options_.terms) {}

int World::add_node(NodeOptions options) {
  Node node;
  node.options = std::move(options);
  const int drift = options_.drift_percent;
  node.clock.rate = 1.0 + 0.01 * random_.between(-drift, drift);
  node.clock.offset = seconds(random_.between(0, 100'000));
  nodes_.push_back(std::move(node));
  return node_count() - 1;
}

void World::start_agent(int id) {
  Node& node = nodes_[index(id)];
  if (node.membership) return;
  node.process = processes_++;
  node.exit_code.reset();
  node.timer_pending = false;
  node.leaving = false;
  node.paused_until = TimePoint{};
  client::MembershipOptions options;
  options.hello.run_id = RunId(node.options.run_id);
  options.hello.agent = AgentId(node.options.host + "#" + std::to_string(node.process));
  options.hello.host = node.options.host;
  options.hello.local_world_size = node.options.workers;
  options.hello.role = node.options.role;
  options.hello.node_rank = node.options.node_rank;
  options.hello.terms = node.options.terms.value_or(options_.terms);
  options.coordinator = "coordinator:29400";
  options.coordinator_timeout = options_.coordinator_timeout;
  const TimePoint local = node.clock.local(now());
  node.membership = std::make_unique<client::Membership>(std::move(options), local);
  ++agents_alive_;
  say(node.options.host + " starts");
  apply(id, node.membership->begin(local));
}

Round World::round_of(int node) const {
  const auto& membership = nodes_[index(node)].membership;
  return membership ? membership->round() : Round(0);
}

void World::forget_agent(int id) {
  Node& node = nodes_[index(id)];
  checker_.on_agent_gone(node.process);
  const std::optional<Group> group = std::exchange(node.group, std::nullopt);
  node.membership.reset();
  --agents_alive_;
  if (group) disturb_peers(group->round.stamp, id);
}

void World::kill_agent(int id, const std::string& how) {
  Node& node = nodes_[index(id)];
  if (!node.membership) return;
  say(node.options.host + " " + how);
  if (node.connection >= 0) close_agent_end(node.connection);
  forget_agent(id);
}

void World::power_off(int id) {
  Node& node = nodes_[index(id)];
  if (!node.membership) return;
  say(node.options.host + " loses power");
  if (node.connection >= 0) {
    Connection& connection = *connections_[index(node.connection)];
    connection.agent_open = false;
    connection.down.closed = true;
    node.connection = -1;
  }
  forget_agent(id);
}

void World::leave(int id, int exit_code, const std::string& reason) {
  Node& node = nodes_[index(id)];
  if (!node.membership) return;
  say(node.options.host + " is told to go: " + reason);
  node.leaving = true;
  to_agent(id, node.process, client::LeaveAsked{exit_code, reason});
}

void World::start_coordinator() {
  if (run_) return;
  ++coordinator_;
  round::RunOptions options{RunId("demo"), "c" + std::to_string(coordinator_)};
  run_ = std::make_unique<round::Run>(std::move(options));
  coordinator_timer_pending_ = false;
  charter_ = false;
  finished_ = false;
  coordinator_clock_.rate =
      1.0 + 0.01 * random_.between(-options_.drift_percent, options_.drift_percent);
  coordinator_clock_.offset = seconds(random_.between(0, 100'000));
  say("coordinator starts");
}

void World::crash_coordinator() {
  if (!run_) return;
  say("coordinator dies");
  run_.reset();
  for (const auto& [link, connection] : std::exchange(by_link_, {})) {
    Connection& one = *connections_[index(connection)];
    one.coordinator_open = false;
    one.up.closed = true;
    push(connection, Way::kDown, Fin{});
  }
}

void World::pause_coordinator(Duration time) {
  coordinator_paused_until_ = now() + time;
}
void World::pause_agent(int node, Duration time) {
  nodes_[index(node)].paused_until = now() + time;
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

void World::to_agent(int id, int process, client::Event event) {
  Node& node = nodes_[index(id)];
  if (!node.membership || node.process != process) return;
  if (now() < node.paused_until) {
    timeline_.at(node.paused_until,
                 [this, id, process, event = std::move(event)] { to_agent(id, process, event); });
    return;
  }
  ++steps_;
  if (const auto* incoming = std::get_if<client::Incoming>(&event)) {
    const bool beat = std::holds_alternative<Beat>(incoming->message);
    if (!beat) say(node.options.host + " <- " + words(incoming->message));
    if (const auto* start = std::get_if<StartRound>(&incoming->message)) {
      checker_.on_told(process, *start);
    }
  }
  apply(id, node.membership->step(event, node.clock.local(now())));
  if (!node.membership) return;
  const bool ending = node.leaving || (node.group && node.group->ending());
  require(node.timer_pending || ending, "an agent waits without a deadline");
}

void World::apply(int id, client::Actions actions) {
  const int process = nodes_[index(id)].process;
  for (const client::Action& action : actions) {
    const Node& node = nodes_[index(id)];
    if (!node.membership || node.process != process) return;
    apply_one(id, action);
  }
}

void World::apply_one(int id, const client::Action& action) {
  Node& node = nodes_[index(id)];
  const int process = node.process;
  if (const auto* connect_to = std::get_if<client::Connect>(&action)) {
    connect(id, connect_to->link);
  } else if (std::holds_alternative<client::CloseLink>(action)) {
    if (node.connection >= 0) close_agent_end(node.connection);
  } else if (const auto* message = std::get_if<client::SendMessage>(&action)) {
    if (!std::holds_alternative<Beat>(message->message)) {
      say(node.options.host + " -> " + words(message->message));
    }
    if (node.connection >= 0) push(node.connection, Way::kUp, through_codec(message->message));
  } else if (std::holds_alternative<client::OpenStore>(action)) {
    const auto port = static_cast<std::uint16_t>(30000 + node.ports++ % 10000);
    timeline_.after(Duration(0), [this, id, process, port] {
      to_agent(id, process, client::StoreOpened{port});
    });
  } else if (const auto* start = std::get_if<client::StartGroup>(&action)) {
    start_group(id, start->round);
  } else if (const auto* stop = std::get_if<client::StopGroup>(&action)) {
    require(!stop->reason.empty(), "workers are stopped without a reason");
    stop_group(id);
  } else if (const auto* timer = std::get_if<client::ArmTimer>(&action)) {
    arm_agent(id, timer->deadline);
  } else if (const auto* end = std::get_if<client::End>(&action)) {
    end_agent(id, *end);
  }
}

void World::end_agent(int id, const client::End& end) {
  Node& node = nodes_[index(id)];
  require(!node.group, "an agent ended over live workers");
  say(node.options.host + " ends with " + std::to_string(end.exit_code) + ": " + end.text);
  checker_.on_agent_ended(node.process, end);
  node.exit_code = end.exit_code;
  if (node.connection >= 0) close_agent_end(node.connection);
  forget_agent(id);
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
    if (node.timer != timer || node.process != process || !node.membership) return;
    if (now() < node.paused_until) return agent_timer(id, process, timer, node.paused_until);
    node.timer_pending = false;
    to_agent(id, process, client::Tick{});
  });
}

void World::arm_coordinator(TimePoint deadline) {
  coordinator_timer_pending_ = true;
  coordinator_timer(coordinator_, ++coordinator_timer_, coordinator_clock_.global(deadline));
}

void World::coordinator_timer(int coordinator, int timer, TimePoint when) {
  timeline_.at(when, [this, coordinator, timer] {
    if (coordinator_timer_ != timer || coordinator_ != coordinator || !run_) return;
    if (now() < coordinator_paused_until_) {
      return coordinator_timer(coordinator, timer, coordinator_paused_until_);
    }
    coordinator_timer_pending_ = false;
    to_coordinator(coordinator, round::Tick{});
  });
}

void World::to_coordinator(int coordinator, round::Event event) {
  if (!run_ || coordinator != coordinator_) return;
  if (now() < coordinator_paused_until_) {
    timeline_.at(coordinator_paused_until_, [this, coordinator, event = std::move(event)] {
      to_coordinator(coordinator, event);
    });
    return;
  }
  ++steps_;
  speaker_ = -1;
  if (const auto* received = std::get_if<round::Received>(&event)) {
    const auto found = by_link_.find(received->link.value());
    if (found != by_link_.end()) speaker_ = connections_[index(found->second)]->process;
    const auto* hello = std::get_if<Hello>(&received->message);
    if (hello != nullptr && hello->claim) checker_.on_claim(hello->claim->restarts);
  }
  if (const auto* lost = std::get_if<round::LinkLost>(&event)) {
    const auto found = by_link_.find(lost->link.value());
    if (found == by_link_.end()) return;  // closed meanwhile
    checker_.on_process_lost(connections_[index(found->second)]->process);
    by_link_.erase(found);
  }
  apply(run_->step(event, coordinator_clock_.local(now())));
  require(coordinator_timer_pending_ || finished_ || !charter_, "the run waits without a deadline");
}

bool World::can_answer(const Connection& connection) const {
  const Node& node = nodes_[index(connection.node)];
  const bool runs = node.membership && node.process == connection.process;
  return runs && connection.agent_open && !node.partitioned && now() >= node.paused_until;
}

void World::apply(round::Actions actions) {
  std::vector<Checker::Sent> rounds;
  for (const round::Action& action : actions) {
    if (const auto* sent = std::get_if<round::Send>(&action)) {
      ++sends_;
      checker_.on_message(sent->message);
      charter_ = charter_ || !std::holds_alternative<Refused>(sent->message);
      const auto found = by_link_.find(sent->link.value());
      require(found != by_link_.end(), "a message to a link that is closed");
      const auto* start = std::get_if<StartRound>(&sent->message);
      const Connection& connection = *connections_[index(found->second)];
      const NodeOptions& to = nodes_[index(connection.node)].options;
      const auto* refused = std::get_if<Refused>(&sent->message);
      const bool blamed = refused != nullptr && refused->code == RefusalCode::kNotAnswering;
      require(!blamed || !can_answer(connection), "an agent that answers was sent away");
      if (start != nullptr) rounds.push_back({connection.process, to.workers, to.role, *start});
      push(found->second, Way::kDown, through_codec(sent->message));
    } else if (const auto* close = std::get_if<round::Close>(&action)) {
      const auto found = by_link_.find(close->link.value());
      if (found != by_link_.end()) close_coordinator_end(found->second);
    } else if (const auto* timer = std::get_if<round::ArmTimer>(&action)) {
      charter_ = true;
      arm_coordinator(timer->deadline);
    } else if (const auto* note = std::get_if<round::Note>(&action)) {
      require(!note->text.empty(), "an empty note");
      say("coordinator: " + note->text);
    } else if (const auto* finish = std::get_if<round::Finish>(&action)) {
      require(!finish->reason.empty(), "an end without a reason");
      finished_ = true;
      say("run is over with " + std::to_string(finish->exit_code));
    }
  }
  if (!rounds.empty()) checker_.on_rounds(rounds);
}

}  // namespace ddprun::sim
