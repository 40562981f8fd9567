// Workers of the simulated world: each node's real WorkerGroup, fed with spawns and exits. A group
// works once all groups of its round run; when one goes, its peers may fail or hang, as in a
// collective.
#include <csignal>
#include <utility>

#include "tests/sim/world.hpp"

namespace ddprun::sim {

void World::start_group(int id, const protocol::StartRound& round) {
  Node& node = nodes_[index(id)];
  require(!node.group, "workers of two rounds on one node");
  checker_.on_group_started(node.process, round);
  Group group;
  group.round = round;
  group.generation = ++generations_;
  group.core =
      std::make_unique<WorkerGroup>(WorkerGroup::Options{node.options.workers, seconds(30)});
  group.started = now();
  const int generation = group.generation;
  node.group = std::move(group);
  say(node.options.host + " starts its workers of round " +
      std::to_string(round.stamp.number.value()));
  feed(id, generation, Start{});
}

// What happens to workers is learned by the agent: later, if its process is paused.
void World::feed(int id, int generation, const GroupEvent& event) {
  Node& node = nodes_[index(id)];
  if (!node.group || node.group->generation != generation) return;
  if (now() < node.paused_until) {
    timeline_.at(node.paused_until, [this, id, generation, event] { feed(id, generation, event); });
    return;
  }
  if (const auto* exited = std::get_if<Exited>(&event)) {
    const bool known = node.group->core->worker(exited->rank).life == WorkerRecord::Life::kRunning;
    if (!known) return;
  }
  if (!WorkerGroup::possible(node.group->core->state(), event)) return;
  const GroupActions actions = node.group->core->step(event, node.clock.local(now()));
  for (const GroupAction& action : actions) act(id, generation, action);
  const bool here = node.group && node.group->generation == generation;
  const bool runs = here && node.group->core->state() == ddprun::GroupState::kHealthy;
  if (runs && !node.group->running) group_runs(id, generation);
}

void World::act(int id, int generation, const GroupAction& action) {
  Node& node = nodes_[index(id)];
  if (!node.group || node.group->generation != generation) return;
  if (const auto* spawn = std::get_if<Spawn>(&action)) {
    const Duration time = random_.between(options_.spawn_min, options_.spawn_max);
    timeline_.after(time / node.options.workers, [this, id, generation, rank = spawn->rank] {
      feed(id, generation, Spawned{rank});
    });
  } else if (const auto* order = std::get_if<Signal>(&action)) {
    const bool kill = order->signal == SIGKILL;
    const Duration time =
        kill ? Duration(milliseconds(1)) : random_.between(options_.stop_min, options_.stop_max);
    timeline_.after(time, [this, id, generation, rank = order->rank, number = order->signal] {
      feed(id, generation, Exited{rank, ExitStatus::signaled(number)});
    });
  } else if (const auto* timer = std::get_if<ddprun::ArmTimer>(&action)) {
    const TimePoint deadline = timer->deadline;
    timeline_.at(node.clock.global(deadline), [this, id, generation, deadline] {
      feed(id, generation, TimerExpired{deadline});
    });
  } else if (const auto* failed = std::get_if<TellFailure>(&action)) {
    tell_failure(id, failed->rank);
  } else if (std::holds_alternative<ddprun::Finish>(action)) {
    group_over(id);
  }
}

void World::group_runs(int id, int generation) {
  Node& node = nodes_[index(id)];
  node.group->running = true;
  const protocol::StartRound round = node.group->round;
  to_agent(id, node.process, client::GroupRunning{round.stamp.number});
  auto& runners = running_[key_of(round.stamp)];
  runners.emplace_back(id, generation);
  if (static_cast<int>(runners.size()) < round.group_size) return;
  for (const auto& [peer, peer_generation] : runners) {
    const Duration time = options_.work + random_.between(Duration(0), options_.work_skew);
    timeline_.after(
        time, [this, runner = peer, number = peer_generation] { group_work_done(runner, number); });
  }
}

void World::group_work_done(int id, int generation) {
  const Node& node = nodes_[index(id)];
  const bool current = node.group && node.group->generation == generation && !node.group->ending();
  if (!current) return;
  for (int rank = 0; rank < node.options.workers; ++rank) {
    feed(id, generation, Exited{LocalRank(rank), ExitStatus::exited(0)});
  }
}

void World::finish_worker_group(int id) {
  const Node& node = nodes_[index(id)];
  if (node.group) group_work_done(id, node.group->generation);
}

void World::fail_worker(int id, const std::string& cause, int exit_code) {
  Node& node = nodes_[index(id)];
  const bool can_fail =
      node.group && node.group->running && !node.group->ending() && node.group->cause.empty();
  if (!can_fail) return;
  node.group->cause = cause;
  node.group->exit_code = exit_code;
  say(node.options.host + "'s rank " + std::to_string(node.group->round.rank_base.value()) +
      " fails: " + cause);
  const protocol::RoundStamp stamp = node.group->round.stamp;
  checker_.on_group_failed(stamp);
  feed(id, node.group->generation, Exited{LocalRank(0), ExitStatus::exited(exit_code)});
  disturb_peers(stamp, id);
}

void World::tell_failure(int id, LocalRank rank) {
  Node& node = nodes_[index(id)];
  node.group->failure_told = true;
  protocol::WorkerExit exit;
  exit.rank = Rank(node.group->round.rank_base.value() + rank.value());
  exit.local_rank = rank;
  exit.pid = 1000 + id;
  exit.exit_code = node.group->exit_code;
  exit.cause = node.group->cause;
  exit.after = std::chrono::duration_cast<milliseconds>(now() - node.group->started);
  exit.tail = {"the last line"};
  to_agent(id, node.process, client::GroupFailed{node.group->round.stamp.number, {exit}});
}

void World::stop_group(int id) {
  Node& node = nodes_[index(id)];
  // Its end may lie unread before the agent: signalling what is gone does nothing.
  if (!node.group || node.group->ending()) return;
  say(node.options.host + " stops its workers of round " +
      std::to_string(node.group->round.stamp.number.value()));
  const protocol::RoundStamp stamp = node.group->round.stamp;
  feed(id, node.group->generation, StopOrdered{SIGTERM, seconds(30)});
  disturb_peers(stamp, id);
}

void World::group_over(int id) {
  Node& node = nodes_[index(id)];
  const Round round = node.group->round.stamp.number;
  const ddprun::GroupState state = node.group->core->state();
  if (state == ddprun::GroupState::kFailed && !node.group->failure_told) {
    tell_failure(id, LocalRank(0));
  }
  node.group.reset();
  if (state == ddprun::GroupState::kSucceeded) {
    checker_.on_group_succeeded(node.process, round);
    say(node.options.host + "'s workers ended with 0");
    to_agent(id, node.process, client::GroupSucceeded{round});
    return;
  }
  checker_.on_group_gone(node.process);
  to_agent(id, node.process, client::GroupGone{round, protocol::Milliseconds(0), 0, 0});
}

void World::disturb_peers(const protocol::RoundStamp& stamp, int id) {
  if (options_.peer_failure_percent == 0) return;
  const auto found = running_.find(key_of(stamp));
  if (found == running_.end()) return;
  for (const auto& [peer, generation] : found->second) {
    if (peer == id || !random_.chance(options_.peer_failure_percent)) continue;
    const Duration time = random_.between(Duration(0), milliseconds(100));
    timeline_.after(time, [this, node = peer, number = generation] {
      const auto& group = nodes_[index(node)].group;
      if (group && group->generation == number) fail_worker(node, "connection closed by peer", 1);
    });
  }
}

}  // namespace ddprun::sim
